//! Macros: records, enumerations with tables, a state machine and an expression
//! language, all by macro_rules. Most of the work is expansion, parsing and name
//! resolution of what comes out.

macro_rules! records {
    ($($name:ident { $($field:ident : $t:ty = $default:expr),* $(,)? })*) => {$(
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $(pub $field: $t,)* }
        impl Default for $name {
            fn default() -> Self { $name { $($field: $default,)* } }
        }
        impl $name {
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($field)),*];
            $(
                pub fn $field(mut self, value: $t) -> Self {
                    self.$field = value;
                    self
                }
            )*
            pub fn describe(&self) -> String {
                let mut out = String::from(stringify!($name));
                $(
                    out.push_str(concat!(" ", stringify!($field), "="));
                    out.push_str(&format!("{:?}", self.$field));
                )*
                out
            }
        }
    )*};
}

macro_rules! repeat_records {
    ($($module:ident)*) => {$(
        pub mod $module {
            records! {
                Point { x: i32 = 0, y: i32 = 0, z: i32 = 0 }
                Color { red: u8 = 255, green: u8 = 128, blue: u8 = 0, alpha: f32 = 1.0 }
                Person { name: String = String::from("nobody"), age: u32 = 0, tags: Vec<String> = Vec::new() }
                Job { id: u64 = 1, title: String = String::new(), pay: Option<f64> = None, done: bool = false }
                Window { left: i16 = 0, top: i16 = 0, width: u16 = 640, height: u16 = 480, title: &'static str = "" }
            }
            pub fn all() -> Vec<String> {
                vec![
                    Point::default().x(1).y(2).describe(),
                    Color::default().alpha(0.5).describe(),
                    Person::default().age(40).describe(),
                    Job::default().pay(Some(1.5)).describe(),
                    Window::default().title(stringify!($module)).describe(),
                ]
            }
        }
    )*};
}
repeat_records!(a b c d e f g h i j k l m n o p q r s t u v w x y z);

macro_rules! count {
    () => { 0usize };
    ($head:tt $($tail:tt)*) => { 1usize + count!($($tail)*) };
}

macro_rules! states {
    ($machine:ident : $($state:ident { $($event:ident => $next:ident),* $(,)? })*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $machine { $($state),* }
        impl $machine {
            pub const COUNT: usize = count!($($state)*);
            pub fn step(self, event: &str) -> Option<Self> {
                match self {
                    $($machine::$state => {
                        $(if event == stringify!($event) { return Some($machine::$next); })*
                        None
                    })*
                }
            }
        }
    };
}

states! { Request:
    Waiting { notified => Ready, cancelled => Done }
    Ready { admitted => Running, cancelled => Done }
    Running { finished => Done, failed => Ready, cancelled => Done }
    Done {}
}
states! { Connection:
    Closed { listen => Listening, connect => SynSent }
    Listening { syn => SynReceived, close => Closed }
    SynSent { ack => Established, syn => SynReceived, close => Closed }
    SynReceived { ack => Established, reset => Listening, close => FinWait }
    Established { fin => CloseWait, close => FinWait }
    CloseWait { close => Closed }
    FinWait { ack => Closed, fin => Closed }
}

/// Translates prefix notation into Rust, one token at a time.
macro_rules! lisp {
    ((+ $a:tt $b:tt)) => { (lisp!($a) + lisp!($b)) };
    ((- $a:tt $b:tt)) => { (lisp!($a) - lisp!($b)) };
    ((* $a:tt $b:tt)) => { (lisp!($a) * lisp!($b)) };
    ((if $c:tt $a:tt $b:tt)) => { (if lisp!($c) != 0 { lisp!($a) } else { lisp!($b) }) };
    ((let $name:ident $value:tt $body:tt)) => {{ let $name = lisp!($value); lisp!($body) }};
    ((do $($e:tt)+)) => {{ let mut last = 0i64; $(last = last.wrapping_add(lisp!($e));)+ last }};
    ($value:expr) => { $value };
}

macro_rules! eight {
    ($e:tt) => { [lisp!($e), lisp!($e), lisp!($e), lisp!($e), lisp!($e), lisp!($e), lisp!($e), lisp!($e)] };
}

/// Evaluates programs that the compiler has unfolded.
pub fn programs(n: i64) -> i64 {
    /* patch */
    let polynomial = eight!((let x (+ n 1) (+ (* x (* x x)) (- (* 3 (* x x)) (+ (* 2 x) 7)))));
    let conditional = eight!((if (- n 3) (let y (* n n) (- y (if y (+ y 1) n))) (do n (+ n 1) (+ n 2) (* n (+ n 3)))));
    let nested = eight!((let a (* n 2) (let b (+ a n) (let c (- b a) (let d (* c (+ a b)) (+ (+ a b) (+ c d)))))));
    polynomial.iter().chain(&conditional).chain(&nested).fold(0i64, |sum, v| sum.wrapping_add(*v))
}

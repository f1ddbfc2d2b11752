//! Generic code: numbers as types, lists as types, iterator adaptors and
//! visitors over them. Most of the work is trait selection and instantiation.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::marker::PhantomData;
use std::ops::{Add, Mul, Sub};

/// A natural number that exists at compile time only.
pub trait Nat {
    const VALUE: usize;
}
pub struct Zero;
pub struct Succ<N>(PhantomData<N>);
impl Nat for Zero {
    const VALUE: usize = 0;
}
impl<N: Nat> Nat for Succ<N> {
    const VALUE: usize = N::VALUE + 1;
}

pub trait Plus<Rhs> {
    type Sum: Nat;
}
impl<R: Nat> Plus<R> for Zero {
    type Sum = R;
}
impl<N, R> Plus<R> for Succ<N>
where
    N: Plus<R>,
{
    type Sum = Succ<N::Sum>;
}

pub trait Times<Rhs> {
    type Product: Nat;
}
impl<R> Times<R> for Zero {
    type Product = Zero;
}
impl<N, R> Times<R> for Succ<N>
where
    N: Times<R>,
    R: Plus<N::Product>,
{
    type Product = R::Sum;
}

pub type N1 = Succ<Zero>;
pub type N2 = Succ<N1>;
pub type N3 = Succ<N2>;
pub type N5 = <N2 as Plus<N3>>::Sum;
pub type N10 = <N5 as Times<N2>>::Product;
pub type N30 = <N10 as Times<N3>>::Product;
pub type N90 = <N30 as Times<N3>>::Product;

/// A list whose elements have different types.
pub struct Nil;
pub struct Cons<H, T>(pub H, pub T);

pub trait Visit {
    fn visit(&self, out: &mut Vec<String>);
}
impl Visit for Nil {
    fn visit(&self, _: &mut Vec<String>) {}
}
impl<H: Debug, T: Visit> Visit for Cons<H, T> {
    fn visit(&self, out: &mut Vec<String>) {
        out.push(format!("{:?}", self.0));
        self.1.visit(out);
    }
}

pub trait Append<Rhs> {
    type Output;
    fn append(self, rhs: Rhs) -> Self::Output;
}
impl<R> Append<R> for Nil {
    type Output = R;
    fn append(self, rhs: R) -> R {
        rhs
    }
}
impl<H, T: Append<R>, R> Append<R> for Cons<H, T> {
    type Output = Cons<H, T::Output>;
    fn append(self, rhs: R) -> Self::Output {
        Cons(self.0, self.1.append(rhs))
    }
}

/// A ring, so that one matrix serves several kinds of numbers.
pub trait Ring: Copy + Debug + PartialEq + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    const ZERO: Self;
    const ONE: Self;
}
macro_rules! ring {
    ($($t:ty)*) => {$(
        impl Ring for $t {
            const ZERO: $t = 0 as $t;
            const ONE: $t = 1 as $t;
        }
    )*};
}
ring!(i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64);

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Complex<T>(pub T, pub T);
impl<T: Ring> Add for Complex<T> {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Complex(self.0 + o.0, self.1 + o.1)
    }
}
impl<T: Ring> Sub for Complex<T> {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        Complex(self.0 - o.0, self.1 - o.1)
    }
}
impl<T: Ring> Mul for Complex<T> {
    type Output = Self;
    fn mul(self, o: Self) -> Self {
        Complex(self.0 * o.0 - self.1 * o.1, self.0 * o.1 + self.1 * o.0)
    }
}
impl<T: Ring> Ring for Complex<T> {
    const ZERO: Self = Complex(T::ZERO, T::ZERO);
    const ONE: Self = Complex(T::ONE, T::ZERO);
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrix<T, const R: usize, const C: usize>(pub [[T; C]; R]);
impl<T: Ring, const R: usize, const C: usize> Matrix<T, R, C> {
    pub fn zero() -> Self {
        Matrix([[T::ZERO; C]; R])
    }
    pub fn times<const K: usize>(&self, o: &Matrix<T, C, K>) -> Matrix<T, R, K> {
        let mut out = Matrix::zero();
        for r in 0..R {
            for k in 0..K {
                out.0[r][k] = (0..C).map(|c| self.0[r][c] * o.0[c][k]).fold(T::ZERO, Add::add);
            }
        }
        out
    }
    pub fn transposed(&self) -> Matrix<T, C, R> {
        let mut out = Matrix::zero();
        for r in 0..R {
            for c in 0..C {
                out.0[c][r] = self.0[r][c];
            }
        }
        out
    }
}

fn grind<T: Ring, const R: usize, const C: usize>() -> String {
    let mut m = Matrix::<T, R, C>::zero();
    for i in 0..R.min(C) {
        m.0[i][i] = T::ONE + T::ONE;
    }
    let square = m.times(&m.transposed());
    format!("{:?} {:?}", square, square.times(&square) == square)
}

macro_rules! grind_all {
    ($out:ident; $($t:ty)*) => {$(
        $out.push(grind::<$t, 1, 2>());
        $out.push(grind::<$t, 2, 2>());
        $out.push(grind::<$t, 2, 3>());
        $out.push(grind::<$t, 3, 4>());
        $out.push(grind::<Complex<$t>, 2, 3>());
    )*};
}

/// Instantiates everything.
pub fn everything() -> Vec<String> {
    let mut out = vec![N90::VALUE.to_string()];
    grind_all!(out; i8 i16 i32 i64 i128 u16 u32 u64 f32 f64);
    let list = Cons(1u8, Cons("two", Cons(3.0f64, Nil))).append(Cons(Some(4), Cons(vec![5u16], Nil)));
    list.visit(&mut out);
    out.extend(group(0..50u32, |n| n % 7));
    out.extend(group(["a", "bb", "cc", "ddd"], |s| s.len()));
    out.extend(group((0..20i64).map(|n| (n, n * n)), |p| p.1 % 5));
    out
}

/// Groups items by a key, through a stack of adaptors.
pub fn group<I, K, F>(items: I, key: F) -> Vec<String>
where
    I: IntoIterator,
    I::Item: Debug + Clone,
    K: Ord + Display + Clone,
    F: Fn(&I::Item) -> K,
{
    /* patch */
    let mut groups: BTreeMap<K, Vec<I::Item>> = BTreeMap::new();
    for item in items.into_iter().enumerate().filter(|(i, _)| i % 3 != 1).map(|(_, item)| item) {
        groups.entry(key(&item)).or_default().push(item);
    }
    groups
        .iter()
        .flat_map(|(k, v)| v.iter().zip(v.iter().skip(1)).map(move |pair| format!("{k}: {pair:?}")))
        .rev()
        .take_while(|s| !s.is_empty())
        .collect()
}

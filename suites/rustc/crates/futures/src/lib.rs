//! Asynchronous functions that the compiler turns into state machines, with a
//! small executor: borrowing over suspension points, boxed recursion, joins and
//! channels.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::{pin, Pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

struct Ignore;
impl Wake for Ignore {
    fn wake(self: Arc<Self>) {}
}

/// Polls a future until it is ready.
pub fn run<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Ignore));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

/// Is ready when it is polled the second time.
#[derive(Default)]
pub struct Yield(bool);
impl Future for Yield {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// A queue between two tasks of one thread.
#[derive(Clone)]
pub struct Channel<T>(Rc<RefCell<VecDeque<T>>>, Rc<Cell<bool>>);
impl<T> Default for Channel<T> {
    fn default() -> Self {
        Channel(Rc::default(), Rc::default())
    }
}
impl<T> Channel<T> {
    pub async fn send(&self, value: T) {
        while self.0.borrow().len() >= 4 {
            Yield::default().await;
        }
        self.0.borrow_mut().push_back(value);
    }
    pub async fn receive(&self) -> Option<T> {
        loop {
            if let Some(value) = self.0.borrow_mut().pop_front() {
                return Some(value);
            }
            if self.1.get() {
                return None;
            }
            Yield::default().await;
        }
    }
    pub fn close(&self) {
        self.1.set(true);
    }
}

/// Runs two futures at once.
pub async fn join<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let mut a = pin!(a);
    let mut b = pin!(b);
    let (mut left, mut right) = (None, None);
    std::future::poll_fn(move |context| {
        if left.is_none() {
            if let Poll::Ready(value) = a.as_mut().poll(context) {
                left = Some(value);
            }
        }
        if right.is_none() {
            if let Poll::Ready(value) = b.as_mut().poll(context) {
                right = Some(value);
            }
        }
        if left.is_some() && right.is_some() {
            return Poll::Ready((left.take().unwrap(), right.take().unwrap()));
        }
        Poll::Pending
    })
    .await
}

macro_rules! stages {
    ($($name:ident : $before:expr, $after:expr;)*) => {$(
        pub async fn $name(input: Channel<u64>, output: Channel<u64>) -> Result<u64, String> {
            let mut total = 0u64;
            let mut history = [0u64; 8];
            let mut count = 0;
            while let Some(value) = input.receive().await {
                let prepared: u64 = ($before)(value);
                Yield::default().await;
                if prepared == u64::MAX {
                    return Err(format!("{}: {value} is too large", stringify!($name)));
                }
                history[count % history.len()] = prepared;
                let result: u64 = ($after)(prepared, &history);
                output.send(result).await;
                total = total.wrapping_add(result);
                count += 1;
                if count % 3 == 0 {
                    pause(count as u32 % 5).await;
                }
            }
            output.close();
            Ok(total)
        }
    )*};
}

stages! {
    double: |v: u64| v.wrapping_mul(2), |v, _: &[u64; 8]| v;
    square: |v: u64| v.wrapping_mul(v), |v: u64, h: &[u64; 8]| v ^ h[0];
    smooth: |v: u64| v, |v: u64, h: &[u64; 8]| (v + h.iter().sum::<u64>() / 8) / 2;
    rotate: |v: u64| v.rotate_left(7), |v: u64, h: &[u64; 8]| v.wrapping_sub(h[7]);
    sorted: |v: u64| v % 1000, |v: u64, h: &[u64; 8]| { let mut h = *h; h.sort(); h[4].max(v) };
    digits: |v: u64| v, |v: u64, _: &[u64; 8]| v.to_string().bytes().map(|b| (b - b'0') as u64).sum();
    primes: |v: u64| v % 97, |v: u64, _: &[u64; 8]| (2..v).filter(|d| v % d == 0).count() as u64;
    packed: |v: u64| v & 0xffff, |v: u64, h: &[u64; 8]| h.iter().fold(v, |a, b| a << 1 ^ b);
}

/// Suspends several times; recursion needs a box.
pub fn pause(n: u32) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        if n > 0 {
            Yield::default().await;
            pause(n - 1).await;
        }
    })
}

async fn feed(output: Channel<u64>, n: u64) {
    /* patch */
    for value in 0..n {
        output.send(value * 31 % 17).await;
    }
    output.close();
}

async fn drain(input: Channel<u64>) -> Vec<u64> {
    let mut all = Vec::new();
    while let Some(value) = input.receive().await {
        all.push(value);
    }
    all
}

macro_rules! pipeline {
    ($n:expr; $a:ident $b:ident $c:ident) => {{
        let (w, x, y, z) = (Channel::default(), Channel::default(), Channel::default(), Channel::default());
        let stages = join($a(w.clone(), x.clone()), join($b(x, y.clone()), $c(y, z.clone())));
        let ((_, (first, (second, third))), all) = join(join(feed(w, $n), stages), drain(z)).await;
        (first? ^ second? ^ third?).wrapping_add(all.iter().sum::<u64>())
    }};
}

/// Runs many pipelines.
pub async fn everything(n: u64) -> Result<Vec<u64>, String> {
    Ok(vec![
        pipeline!(n; double square smooth),
        pipeline!(n; rotate sorted digits),
        pipeline!(n; primes packed double),
        pipeline!(n; smooth digits primes),
        pipeline!(n; packed rotate square),
        pipeline!(n; sorted double packed),
        pipeline!(n; digits primes rotate),
        pipeline!(n; square smooth sorted),
    ])
}

pub fn total(n: u64) -> u64 {
    run(everything(n)).map(|all| all.iter().sum()).unwrap_or(0)
}

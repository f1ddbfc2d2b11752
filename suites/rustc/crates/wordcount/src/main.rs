//! Counts words of standard input, or of files, and prints the most frequent.

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::ExitCode;

#[derive(Debug, Default)]
struct Options {
    files: Vec<String>,
    top: usize,
    fold: bool,
    shortest: usize,
}

#[derive(Debug)]
enum UsageError {
    Unknown(String),
    Missing(&'static str),
    NoNumber(&'static str, std::num::ParseIntError),
}

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            UsageError::Unknown(option) => write!(f, "unknown option {option}"),
            UsageError::Missing(option) => write!(f, "{option} needs a value"),
            UsageError::NoNumber(option, err) => write!(f, "{option}: {err}"),
        }
    }
}

impl Error for UsageError {}

impl Options {
    fn parse(args: impl IntoIterator<Item = String>) -> Result<Options, UsageError> {
        let mut options = Options { top: 10, shortest: 1, ..Options::default() };
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut number = |option: &'static str| -> Result<usize, UsageError> {
                let value = args.next().ok_or(UsageError::Missing(option))?;
                value.parse().map_err(|err| UsageError::NoNumber(option, err))
            };
            match arg.as_str() {
                "--top" => options.top = number("--top")?,
                "--shortest" => options.shortest = number("--shortest")?,
                "--fold" => options.fold = true,
                other if other.starts_with("--") => return Err(UsageError::Unknown(arg)),
                _ => options.files.push(arg),
            }
        }
        Ok(options)
    }
}

#[derive(Default)]
struct Counter {
    words: HashMap<String, u64>,
    lines: u64,
    bytes: u64,
}

impl Counter {
    fn read(&mut self, input: &mut dyn BufRead, options: &Options) -> io::Result<()> {
        let mut line = String::new();
        while input.read_line(&mut line)? > 0 {
            self.lines += 1;
            self.bytes += line.len() as u64;
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '\'');
            for word in words.filter(|word| word.chars().count() >= options.shortest) {
                let key = if options.fold { word.to_lowercase() } else { word.to_owned() };
                *self.words.entry(key).or_insert(0) += 1;
            }
            line.clear();
        }
        Ok(())
    }

    fn report(&self, options: &Options, out: &mut impl Write) -> io::Result<()> {
        let mut sorted: Vec<_> = self.words.iter().collect();
        sorted.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        let width = sorted.iter().take(options.top).map(|(word, _)| word.chars().count()).max().unwrap_or(0);
        for (word, count) in sorted.into_iter().take(options.top) {
            writeln!(out, "{word:width$} {count:8} {:6.2} %", *count as f64 * 100.0 / self.words.len() as f64)?;
        }
        writeln!(out, "{} lines, {} bytes, {} words", self.lines, self.bytes, self.words.len())
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    /* patch */
    let options = Options::parse(std::env::args().skip(1))?;
    let mut counter = Counter::default();
    if options.files.is_empty() {
        counter.read(&mut io::stdin().lock(), &options)?;
    }
    for name in &options.files {
        let file = File::open(name).map_err(|err| format!("{name}: {err}"))?;
        counter.read(&mut BufReader::new(file), &options)?;
    }
    counter.report(&options, &mut io::stdout().lock())?;
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("wordcount: {err}");
            ExitCode::from(2)
        }
    }
}

// SPDX-License-Identifier: MIT
//! A run of eight steps that continues where it was killed. Usage: resume DIRECTORY
use tnk::{AdamParams, Code, Datum, LedgerOptions, LedgerSave, LoraOptions, Service};

fn main() -> tnk::Result<()> {
    let directory = std::env::args().nth(1).expect("usage: resume DIRECTORY");
    let service = Service::new()?;
    let ledger = service.open_ledger(directory, LedgerOptions::new().every_steps(2)).wait()?;
    let training = match ledger.resume().wait() {
        Ok(training) => training,
        Err(error) if error.code() == Code::ENOTFOUND => {
            service.create_lora(LoraOptions::new("tnk/byte-lm").rank(8).seed(1)).wait()?
        }
        Err(error) => return Err(error),
    };
    let first = ledger.resumed()?.and_then(|entry| entry.batch).unwrap_or(0);
    println!("from {}", first);
    let tokens: Vec<i32> = "hello".bytes().map(i32::from).collect();
    for step in first..8 {
        let pass = training.forward_backward(vec![Datum::next_token(&tokens)], "cross_entropy");
        training.optim_step(AdamParams::new().learning_rate(0.01)).wait()?;
        println!("loss {} {}", step, pass.wait()?.loss().unwrap_or(f64::NAN));
        if ledger.due(&training)? {
            ledger.save(&training, LedgerSave::new().batch(step + 1)).wait()?;
        }
    }
    ledger.save(&training, LedgerSave::new().batch(8).is_final(true)).wait()?;
    service.close().wait()
}

//! A sample ticket, made at start to check the template before the first order.

use anyhow::{Context, Result};
use stampede_model::TemplateFiles;
use stampede_press::{Compiler, Ready, sample};

/// Makes one ticket with the template and returns its PDF.
pub(crate) async fn try_out(compiler: &dyn Compiler, files: &TemplateFiles) -> Result<Vec<u8>> {
    let made = async {
        let event = sample::event();
        let published = compiler.compile(files, &event).await?;
        let document = sample::document(&event, sample::holder(), sample::price(&event));
        Ready::new("sample", &published.blob)?.pdf(compiler, &document).await
    };
    made.await.context("the ticket template does not work (TICKET_TEMPLATE)")
}

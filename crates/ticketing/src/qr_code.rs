//! The QR code of a ticket alone: what is printed on its PDF, as a picture.

use stampede_model::{Ticket, TicketStatus};
use stampede_press::{CodeShape, code_png, code_svg};

use crate::{Error, Ticketing};

/// The form of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeFormat {
    /// A drawing.
    Svg,
    /// Pixels.
    Png,
}

/// What a caller gets who wants the QR code of a ticket.
#[derive(Debug)]
pub enum CodePicture {
    /// The picture.
    Ready(Vec<u8>),
    /// The ticket is void.
    Void,
}

impl Ticketing {
    /// The QR code of a ticket, which says what its PDF says.
    pub async fn code_picture(
        &self,
        ticket: &Ticket,
        format: CodeFormat,
        shape: CodeShape,
    ) -> Result<CodePicture, Error> {
        if ticket.status == TicketStatus::Void {
            return Ok(CodePicture::Void);
        }
        let token = self.shared.store.token(ticket).await?.to_string();
        let picture = match format {
            CodeFormat::Svg => code_svg(&token, shape).map(String::into_bytes),
            CodeFormat::Png => code_png(&token, shape),
        };
        Ok(CodePicture::Ready(picture?))
    }
}

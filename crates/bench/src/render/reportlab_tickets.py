"""CPU seconds and bytes for one ticket with ReportLab, warm: the count is the first argument."""
import io
import sys
import time

from reportlab.lib.colors import HexColor, white
from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.pdfgen import canvas

count = int(sys.argv[1])
COLOURS = (HexColor("#667eea"), HexColor("#764ba2"))


def ticket(index):
    out = io.BytesIO()
    page = canvas.Canvas(out, pagesize=A4)
    width, height = A4
    page.linearGradient(0, height, width, 0, COLOURS)
    page.setFillColor(white)
    page.roundRect(20 * mm, 20 * mm, 170 * mm, 257 * mm, 7 * mm, stroke=0, fill=1)
    page.saveState()
    clip = page.beginPath()
    clip.rect(20 * mm, 240 * mm, 170 * mm, 37 * mm)
    page.clipPath(clip, stroke=0)
    page.linearGradient(20 * mm, 277 * mm, 190 * mm, 240 * mm, COLOURS)
    page.restoreState()
    page.setFillColor(white)
    page.setFont("Helvetica-Bold", 24)
    page.drawString(30 * mm, 258 * mm, "Midsummer Night Festival")
    rows = (("NAME", f"Amelia Hartmann {index}"), ("LOCATION", "Tempelhofer Feld, Berlin"),
            ("SEAT", f"Row C, Seat {index}"), ("PRICE", "48.00"))
    for row, (label, value) in enumerate(rows):
        y = (220 - 22 * row) * mm
        page.setFillColor(HexColor("#666666"))
        page.setFont("Helvetica", 9)
        page.drawString(30 * mm, y, label)
        page.setFillColor(HexColor("#333333"))
        page.setFont("Helvetica-Bold", 14)
        page.drawString(30 * mm, y - 7 * mm, value)
    page.setFillColor(HexColor("#000000"))
    for module in range(41 * 41):
        if (module * 7919 + index * 31) % 97 < 48:
            page.rect(130 * mm + module % 41 * mm, 150 * mm + module // 41 * mm, mm, mm, stroke=0, fill=1)
    page.save()
    return len(out.getvalue())


ticket(0)
start = time.process_time()
size = sum(ticket(index) for index in range(count))
print((time.process_time() - start) / count, size / count)

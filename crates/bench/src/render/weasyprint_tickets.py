"""CPU seconds and bytes for one ticket with WeasyPrint, warm: count and HTML file are the arguments."""
import sys
import time

from weasyprint import HTML
from weasyprint.text.fonts import FontConfiguration

count, page = int(sys.argv[1]), open(sys.argv[2], encoding="utf-8").read()
fonts = FontConfiguration()


def ticket(index):
    return len(HTML(string=page.replace("Hartmann 1", f"Hartmann {index}")).write_pdf(font_config=fonts))


ticket(0)
start = time.process_time()
size = sum(ticket(index) for index in range(count))
print((time.process_time() - start) / count, size / count)

//! A day and a time as people of a language write them.

use jiff::Zoned;

/// Names and order of the parts of a date in one language.
struct Words {
    language: &'static str,
    /// `{w}` weekday, `{d}` day, `{m}` month, `{y}` year, `{t}` time.
    pattern: &'static str,
    /// From Monday.
    weekdays: [&'static str; 7],
    /// As they stand after a day.
    months: [&'static str; 12],
    /// Added to the year: some count from another one.
    years: i16,
}

/// `Saturday, 21 November 2026, 19:30`, in the language; in English if it is not known.
pub(super) fn written(zoned: &Zoned, language: &str) -> String {
    let known = LANGUAGES.iter().find(|words| words.language == language);
    let words = known.unwrap_or(&LANGUAGES[0]);
    let weekday = words.weekdays[zoned.weekday().to_monday_zero_offset() as usize % 7];
    let month = words.months[(zoned.month() - 1) as usize % 12];
    words
        .pattern
        .replace("{w}", weekday)
        .replace("{d}", &zoned.day().to_string())
        .replace("{m}", month)
        .replace("{y}", &(zoned.year() + words.years).to_string())
        .replace("{t}", &format!("{:02}:{:02}", zoned.hour(), zoned.minute()))
}

const LANGUAGES: [Words; 11] = [
    Words {
        language: "en",
        pattern: "{w}, {d} {m} {y}, {t}",
        weekdays: ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
        months: [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ],
        years: 0,
    },
    Words {
        language: "ru",
        pattern: "{w}, {d} {m} {y}, {t}",
        weekdays: [
            "понедельник",
            "вторник",
            "среда",
            "четверг",
            "пятница",
            "суббота",
            "воскресенье",
        ],
        months: [
            "января",
            "февраля",
            "марта",
            "апреля",
            "мая",
            "июня",
            "июля",
            "августа",
            "сентября",
            "октября",
            "ноября",
            "декабря",
        ],
        years: 0,
    },
    Words {
        language: "uk",
        pattern: "{w}, {d} {m} {y}, {t}",
        weekdays: ["понеділок", "вівторок", "середа", "четвер", "п’ятниця", "субота", "неділя"],
        months: [
            "січня",
            "лютого",
            "березня",
            "квітня",
            "травня",
            "червня",
            "липня",
            "серпня",
            "вересня",
            "жовтня",
            "листопада",
            "грудня",
        ],
        years: 0,
    },
    Words {
        language: "de",
        pattern: "{w}, {d}. {m} {y}, {t} Uhr",
        weekdays: ["Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"],
        months: [
            "Januar",
            "Februar",
            "März",
            "April",
            "Mai",
            "Juni",
            "Juli",
            "August",
            "September",
            "Oktober",
            "November",
            "Dezember",
        ],
        years: 0,
    },
    Words {
        language: "fr",
        pattern: "{w} {d} {m} {y}, {t}",
        weekdays: ["lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"],
        months: [
            "janvier",
            "février",
            "mars",
            "avril",
            "mai",
            "juin",
            "juillet",
            "août",
            "septembre",
            "octobre",
            "novembre",
            "décembre",
        ],
        years: 0,
    },
    Words {
        language: "es",
        pattern: "{w}, {d} de {m} de {y}, {t}",
        weekdays: ["lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"],
        months: [
            "enero",
            "febrero",
            "marzo",
            "abril",
            "mayo",
            "junio",
            "julio",
            "agosto",
            "septiembre",
            "octubre",
            "noviembre",
            "diciembre",
        ],
        years: 0,
    },
    Words {
        language: "ar",
        pattern: "{w}، {d} {m} {y}، {t}",
        weekdays: ["الاثنين", "الثلاثاء", "الأربعاء", "الخميس", "الجمعة", "السبت", "الأحد"],
        months: [
            "يناير",
            "فبراير",
            "مارس",
            "أبريل",
            "مايو",
            "يونيو",
            "يوليو",
            "أغسطس",
            "سبتمبر",
            "أكتوبر",
            "نوفمبر",
            "ديسمبر",
        ],
        years: 0,
    },
    Words {
        language: "he",
        pattern: "{w}, {d} {m} {y}, {t}",
        weekdays: [
            "יום שני",
            "יום שלישי",
            "יום רביעי",
            "יום חמישי",
            "יום שישי",
            "יום שבת",
            "יום ראשון",
        ],
        months: [
            "בינואר",
            "בפברואר",
            "במרץ",
            "באפריל",
            "במאי",
            "ביוני",
            "ביולי",
            "באוגוסט",
            "בספטמבר",
            "באוקטובר",
            "בנובמבר",
            "בדצמבר",
        ],
        years: 0,
    },
    Words {
        language: "zh",
        pattern: "{y}年{m}{d}日 {w} {t}",
        weekdays: ["星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"],
        months: [
            "1月", "2月", "3月", "4月", "5月", "6月", "7月", "8月", "9月", "10月", "11月", "12月",
        ],
        years: 0,
    },
    Words {
        language: "hi",
        pattern: "{w}, {d} {m} {y}, {t}",
        weekdays: ["सोमवार", "मंगलवार", "बुधवार", "गुरुवार", "शुक्रवार", "शनिवार", "रविवार"],
        months: [
            "जनवरी",
            "फ़रवरी",
            "मार्च",
            "अप्रैल",
            "मई",
            "जून",
            "जुलाई",
            "अगस्त",
            "सितंबर",
            "अक्टूबर",
            "नवंबर",
            "दिसंबर",
        ],
        years: 0,
    },
    // Thai calendars count from the year of the Buddha's death.
    Words {
        language: "th",
        pattern: "{w}ที่ {d} {m} {y} เวลา {t} น.",
        weekdays: ["วันจันทร์", "วันอังคาร", "วันพุธ", "วันพฤหัสบดี", "วันศุกร์", "วันเสาร์", "วันอาทิตย์"],
        months: [
            "มกราคม",
            "กุมภาพันธ์",
            "มีนาคม",
            "เมษายน",
            "พฤษภาคม",
            "มิถุนายน",
            "กรกฎาคม",
            "สิงหาคม",
            "กันยายน",
            "ตุลาคม",
            "พฤศจิกายน",
            "ธันวาคม",
        ],
        years: 543,
    },
];

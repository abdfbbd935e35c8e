use std::io::Cursor;
use std::time::Instant;

use super::*;

fn rules(kind: AddressKind) -> Rules<'static> {
    Rules { kind, country: None, most: 1_000 }
}

fn read_as(bytes: &[u8], format: Format, rules: &Rules<'_>) -> Result<(Vec<Row>, Report), String> {
    let mut rows = Vec::new();
    let report = read(Cursor::new(bytes), format, None, rules, &mut |row| {
        rows.push(row);
        Ok(())
    });
    report.map(|report| (rows, report)).map_err(|error| error.to_string())
}

fn csv(text: &str) -> Result<(Vec<Row>, Report), String> {
    read_as(text.as_bytes(), Format::Csv(None), &rules(AddressKind::Phone))
}

fn json(text: &str) -> Result<(Vec<Row>, Report), String> {
    read_as(text.as_bytes(), Format::Json, &rules(AddressKind::Phone))
}

fn ndjson(text: &str) -> Result<(Vec<Row>, Report), String> {
    read_as(text.as_bytes(), Format::Ndjson, &rules(AddressKind::Phone))
}

fn told(report: &Report) -> Vec<String> {
    let told = report.mistakes.listed.iter();
    told.map(|m| format!("{} {} {}", m.line.unwrap_or(0), m.field, m.message)).collect()
}

fn addresses(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.address.as_deref().unwrap_or("-")).collect()
}

#[test]
fn a_table_of_a_spreadsheet_becomes_recipients() {
    let text = "\u{feff}Телефон;Имя гостя;Сообщение;Time Zone;Сумма\r\n79991234567;Зоя;\"Привет,\r\nЗоя\";Europe/Moscow;=1+1\r\n\r\n;;;;\r\n+7 999 765-43-21;Иван;;;\r\n";
    let (rows, report) = csv(text).unwrap();
    assert_eq!(report.delimiter, Some(Delimiter::Semicolon));
    assert_eq!((report.rows, report.invalid, report.mistakes.count, report.messages), (2, 0, 0, 1));
    assert_eq!(addresses(&rows), ["+79991234567", "+79997654321"]);
    assert_eq!((rows[0].line, rows[1].line), (2, 6));
    assert_eq!(rows[0].fields["Имя_гостя"], "Зоя");
    assert_eq!(rows[0].fields["Сумма"], "=1+1", "a formula is kept as text");
    assert_eq!(rows[0].message.as_deref(), Some("Привет,\r\nЗоя"));
    assert_eq!(rows[0].time_zone.as_deref(), Some("Europe/Moscow"));
    assert_eq!((rows[1].message.as_deref(), rows[1].fields["Сумма"].as_str()), (None, ""));
    assert_eq!((report.fields["Имя_гостя"], report.fields["Сумма"]), (2, 1));
    let columns: Vec<&str> = report.columns.iter().map(|column| column.field.as_str()).collect();
    assert_eq!(columns, ["address", "Имя_гостя", "message", "timeZone", "Сумма"]);
}

#[test]
fn every_bad_row_is_told_with_its_line_whatever_ends_lines() {
    for end in ["\n", "\r\n", "\r"] {
        let lines = [
            "phone,name,tz",
            "79991234567,\"two",
            "lines\",",
            "nobody,Ann,",
            ",Bob,",
            "79991234567,Eve,Mars/Base",
            "79991234567,Max,,surplus",
            "79991234567,N\u{0}l,",
            "112,Short,",
        ];
        let (rows, report) = csv(&lines.join(end)).unwrap();
        let told = told(&report);
        assert_eq!(addresses(&rows), ["+79991234567", "-", "-", "-"], "{end:?} {told:?}");
        assert!(told[0].starts_with("4 phone contains 'n'"), "{told:?}");
        assert_eq!(told[1], "5 phone is missing");
        assert!(told[2].starts_with("6 timeZone \"Mars/Base\" is no time zone"), "{told:?}");
        assert!(told[3].starts_with("7  the row has 4 cells"), "{told:?}");
        assert!(told[4].starts_with("8 name contains U+0000"), "{told:?}");
        assert!(told[5].starts_with("9 phone has too few digits"), "{told:?}");
        assert_eq!((report.mistakes.count, report.rows, report.invalid), (6, 4, 3));
        assert_eq!(rows[1].address.as_ref().unwrap_err().given, "nobody");
        assert_eq!((rows[2].line, rows[3].line), (5, 9));
        assert_eq!(rows[2].address.as_ref().unwrap_err().given, "", "it has none");
    }
}

#[test]
fn rows_and_mistakes_are_all_counted_and_a_thousand_mistakes_listed() {
    let text = format!("phone\n{}", "x\n79991234567\n,\n".repeat(300));
    let (rows, report) = csv(&text.replace("\n,\n", "\n\"\",\"\"\n")).unwrap();
    assert_eq!((rows.len(), report.rows, report.invalid), (600, 600, 300));
    let many = format!("phone,n\n{}", ",x\n".repeat(5_000));
    let rules = Rules { most: 5_000, ..rules(AddressKind::Phone) };
    let (rows, report) = read_as(many.as_bytes(), Format::Csv(None), &rules).unwrap();
    assert_eq!(
        (rows.len(), report.mistakes.count, report.mistakes.listed.len()),
        (5_000, 5_000, 1_000)
    );
}

#[test]
fn the_encoding_is_found_by_its_mark_or_its_bytes() {
    let text = "телефон;имя\r\n79991234567;Зоя Петрова\r\n79997654321;Иван Сидоров, Москва\r\n";
    let marked = format!("\u{feff}{text}");
    let wide = |byte: fn(u16) -> [u8; 2]| marked.encode_utf16().flat_map(byte).collect::<Vec<u8>>();
    let cyrillic = encoding_rs::WINDOWS_1251.encode(text).0.into_owned();
    for (bytes, encoding) in [
        (text.as_bytes().to_vec(), "UTF-8"),
        (marked.as_bytes().to_vec(), "UTF-8"),
        (wide(u16::to_le_bytes), "UTF-16LE"),
        (wide(u16::to_be_bytes), "UTF-16BE"),
        (cyrillic, "windows-1251"),
    ] {
        let (rows, report) =
            read_as(&bytes, Format::Csv(None), &rules(AddressKind::Phone)).unwrap();
        assert_eq!((report.encoding, rows.len()), (encoding, 2));
        assert_eq!(rows[0].fields["имя"], "Зоя Петрова");
    }
    let german = encoding_rs::WINDOWS_1252
        .encode("phone;name\n79991234567;Jürgen Müller aus Köln, Straße\n")
        .0;
    let refused = read_as(&german, Format::Csv(None), &rules(AddressKind::Phone)).unwrap_err();
    assert!(refused.contains("charset=windows-1252"), "{refused}");
    // A bad byte far behind the beginning is found before the first row is kept.
    let mut late = format!("phone;name\n{}", "79991234567;Ann\n".repeat(10_000)).into_bytes();
    late.extend_from_slice(b"79991234567;\xff\xfe\x80\n");
    let mut kept = 0;
    let failed =
        read(Cursor::new(&late), Format::Csv(None), None, &rules(AddressKind::Phone), &mut |_| {
            kept += 1;
            Ok(())
        });
    assert!(failed.is_err());
}

#[test]
fn a_mark_in_the_middle_and_quotes_that_never_close_are_told() {
    let (rows, report) = csv("phone,name\n\u{feff}79991234567,A\u{feff}nn\n").unwrap();
    assert_eq!(addresses(&rows), ["+79991234567"], "{:?}", told(&report));
    let refused = csv("phone,name\n79991234567,\"Ann\n79991234567,Bob\n").unwrap_err();
    assert!(refused.contains("opens on line 2"), "{refused}");
}

#[test]
fn hostile_tables_are_refused_or_told() {
    let huge = format!(
        "phone,notes\n79991234567,{}\n{},x\n79991234567,y\n",
        "z".repeat(10 << 20),
        "1".repeat(10 << 20)
    );
    let (rows, report) = csv(&huge).unwrap();
    let told = told(&report);
    assert_eq!((rows.len(), rows[0].line), (1, 4));
    assert!(told[0].starts_with("2 notes is longer than 4096 bytes, has 10485760"), "{told:?}");
    assert!(told[1].starts_with("3 address is longer than"), "{told:?}");
    let (rows, _) = csv("phone,f\n79991234567,=HYPERLINK(\"x\")\n79991234567,'=1+1\n").unwrap();
    assert_eq!(
        (rows[0].fields["f"].as_str(), rows[1].fields["f"].as_str()),
        ("=HYPERLINK(\"x\")", "'=1+1")
    );
    for (empty, reason) in [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("phone\n", "no rows"),
        ("phone,name\n,\n \n", "no rows"),
    ] {
        let refused = csv(empty).unwrap_err();
        assert!(refused.contains(reason), "{empty:?}: {refused}");
    }
    let wide = (0..100_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    assert!(csv(&wide).unwrap_err().contains("100000 columns"));
    let many = format!("phone\n{}", "79991234567\n".repeat(1_001));
    assert!(csv(&many).unwrap_err().contains("more than 1000 recipients"));
}

fn refused(text: &str) -> (String, Vec<String>) {
    let mut kept = 0;
    let read =
        read(Cursor::new(text), Format::Csv(None), None, &rules(AddressKind::Phone), &mut |_| {
            kept += 1;
            Ok(())
        });
    match read.unwrap_err() {
        Error::Refused { told: why, report } => (why, told(&report)),
        other => panic!("{other:?}, {kept} kept"),
    }
}

#[test]
fn mistakes_of_the_header_and_of_the_rows_come_at_once() {
    let text = "phone,mobile,seat,seat,tz\nnobody,1,,,Mars\n79991234567,1,,,,surplus\n";
    let (why, all) = refused(text);
    assert!(why.contains("two columns hold the address: \"phone\" and \"mobile\""), "{why}");
    assert!(why.contains("two columns hold the same: \"seat\" and \"seat\""), "{why}");
    assert_eq!(all.len(), 5, "{all:?}");
    assert!(all[0].starts_with("1  two columns hold the address"), "{all:?}");
    assert!(all[1].starts_with("1  two columns hold the same"), "{all:?}");
    assert!(all[2].starts_with("2 timeZone \"Mars\" is no time zone"), "{all:?}");
    assert!(all[3].starts_with("2 phone contains 'n'"), "{all:?}");
    assert!(all[4].starts_with("3  the row has 6 cells"), "{all:?}");
    // A column that is missing is told once, not for every row.
    let (why, all) = refused("name,tz\nAnn,UTC\nBob,Mars\nEve,\n");
    assert!(why.contains("no column is called \"phone\""), "{why}");
    assert_eq!(all.len(), 2, "{all:?}");
    // Rows before the place where the file cannot be read any more.
    let (why, all) = refused("phone,tz\nnobody,\n79991234567,\"UTC\n");
    assert!(why.contains("opens on line 3"), "{why}");
    assert!(all[0].contains("opens on line 3") && all[1].starts_with("2 phone"), "{all:?}");
    let (why, _) = refused("name,name\n");
    assert!(why.contains("\"phone\"") && why.contains("hold the same") && why.contains("no rows"));
}

#[test]
fn two_encodings_in_one_file_are_refused_and_no_row_of_it_is_kept_as_rubbish() {
    let mut mixed = "phone;имя\n79991234567;Зоя\n".as_bytes().to_vec();
    mixed.extend_from_slice(b"79997654321;\xc8\xe2\xe0\xed\n");
    let rules = rules(AddressKind::Phone);
    let read = read_as(&mixed, Format::Csv(None), &rules);
    // As windows-1251, the first rows would be rubbish, as UTF-8 the last one is none.
    match read {
        Err(told) => assert!(told.contains("UTF-8") || told.contains("charset"), "{told}"),
        Ok((rows, report)) => panic!("{} {rows:?}", report.encoding),
    }
    // Pairs of bytes that are a letter of UTF-8 by chance: Сё.
    let names = "телефон;имя\n79991234567;Сёмин Семён, Саратов\n79997654321;Сёмина Софья, Самара\n";
    let cyrillic = encoding_rs::WINDOWS_1251.encode(names).0;
    let (rows, report) = read_as(&cyrillic, Format::Csv(None), &rules).unwrap();
    assert_eq!((rows.len(), report.encoding), (2, "windows-1251"));
}

#[test]
fn a_header_without_an_address_or_with_two_is_refused() {
    let refused = csv("79991234567,Ann\n").unwrap_err();
    assert!(refused.contains("\"phone\"") && refused.contains("\"79991234567\""), "{refused}");
    assert!(csv("phone,mobile\n1,2\n").unwrap_err().contains("two columns hold the address"));
    assert!(
        csv("phone,First name,first_name,First_name\n1,2,3,4\n")
            .unwrap_err()
            .contains("hold the same")
    );
    let (rows, _) = csv("address,phone\nMain Street 1,79991234567\n").unwrap();
    assert_eq!(addresses(&rows), ["+79991234567"]);
    assert_eq!(rows[0].fields["address"], "Main Street 1");
    let fields: Vec<String> = (0..17).map(|n| format!("f{n}")).collect();
    let header = format!("phone,{}\n1\n", fields.join(","));
    assert!(csv(&header).unwrap_err().contains("17 columns for fields"));
    let (rows, _) = csv(&format!("phone,{},,\n79991234567,1\n", fields[..16].join(","))).unwrap();
    assert_eq!(rows[0].fields.len(), 16);
}

#[test]
fn the_body_of_older_software_is_read_as_it_is() {
    let body = r#"{
        "accountId": "your_account_id",
        "name": "Рассылка на 1000 человек",
        "recipients": [
          {"phoneNumber": "79991234567", "message": "Привет!"},
          {"phoneNumber": "79997654321", "message": "Привет!"}
        ]
      }"#;
    let (rows, report) = read_as(body.as_bytes(), Format::Json, &rules(AddressKind::Any)).unwrap();
    assert_eq!(addresses(&rows), ["+79991234567", "+79997654321"]);
    assert_eq!((rows[0].message.as_deref(), report.messages), (Some("Привет!"), 2));
    assert!(rows[0].fields.is_empty());
}

#[test]
fn json_rows_have_fields_of_all_plain_kinds() {
    let row = r#"[{"phoneNumber": 79991234567, "name": "Ann", "vip": true, "seats": 2, "price": 49.90, "note": null, "timeZone": "UTC",
        "fields": {"city": "Köln", "n": -1}, "email": "a@b.cc"}]"#;
    let (rows, report) = json(row).unwrap();
    assert_eq!(told(&report), Vec::<String>::new());
    let expected = [
        ("city", "Köln"),
        ("email", "a@b.cc"),
        ("n", "-1"),
        ("name", "Ann"),
        ("note", ""),
        ("price", "49.9"),
        ("seats", "2"),
        ("vip", "true"),
    ];
    let fields: Vec<(&str, &str)> =
        rows[0].fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(fields, expected);
    assert_eq!(rows[0].time_zone.as_deref(), Some("UTC"));
    let mail = Rules { kind: AddressKind::Mail, ..rules_of() };
    let (rows, _) = read_as(row.as_bytes(), Format::Json, &mail).unwrap();
    assert_eq!(
        (addresses(&rows)[0], rows[0].fields["phoneNumber"].as_str()),
        ("a@b.cc", "79991234567")
    );
}

fn rules_of() -> Rules<'static> {
    rules(AddressKind::Any)
}

#[test]
fn mistakes_in_json_are_told_with_their_path() {
    let body = r#"{"recipients": [5, {"name": "Ann"}, {"phone": "79991234567", "tags": [1, {"a": 2}]}, {"phone": "79991234567", "phone": "1"},
        {"phone": "79991234567", "fields": 7}, {"phone": "79991234567", "!": 1}, {"phone": "79991234567"}]}"#;
    let (rows, report) = json(body).unwrap();
    assert_eq!((rows.len(), rows[0].line, rows[1].line), (2, 2, 7));
    let told: Vec<String> = told(&report).iter().map(|told| told[2..].to_owned()).collect();
    assert!(told[0].starts_with("recipients[0] must be an object"), "{told:?}");
    assert_eq!(told[1], "recipients[1].address is missing");
    assert_eq!(told[2], "recipients[2].tags must be a text, a number, true or false");
    assert_eq!(told[3], "recipients[3].phone is given twice");
    assert_eq!(told[4], "recipients[4] fields must be an object");
    assert!(told[5].starts_with("recipients[5].! is no name of a field"), "{told:?}");
    let fields: Vec<String> = (0..20).map(|n| format!("\"f{n}\": {n}")).collect();
    let (_, report) =
        json(&format!("[{{\"phone\": \"79991234567\", {}}}]", fields.join(", "))).unwrap();
    assert_eq!(report.mistakes.count, 1);
    for (body, reason) in [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[{\"phone\": \"1\"}", "not valid JSON"),
        ("{}", "must be a list of recipients"),
        ("\"x\"", "must be a list of recipients"),
        ("{\"recipients\": 5}", "must be a list of recipients"),
        ("[]", "is empty"),
        ("{\"recipients\": [{\"phone\": \"79991234567\"}], \"recipients\": []}", "given twice"),
    ] {
        let refused = json(body).unwrap_err();
        assert!(refused.contains(reason), "{body}: {refused}");
    }
    let long = format!("\"{}\"", "A".repeat(100_000));
    assert!(json(&long).unwrap_err().len() < 300);
    let deep = "[".repeat(100_000);
    assert!(json(&deep).is_err());
}

#[test]
fn every_line_of_ndjson_is_a_recipient_or_a_mistake() {
    let long = format!("{{\"phone\": \"79991234567\", \"message\": \"{}\"}}", "x".repeat(1 << 20));
    let lines = [
        "{\"phone\": \"79991234567\"}",
        "",
        "[1]",
        "{\"phone\"",
        &long,
        "{\"phoneNumber\": \"79997654321\", \"message\": \"Hi\"}",
    ];
    let (rows, report) = ndjson(&lines.join("\r\n")).unwrap();
    assert_eq!(addresses(&rows), ["+79991234567", "+79997654321"]);
    assert_eq!((rows[0].line, rows[1].line), (1, 6));
    let told = told(&report);
    assert!(told[0].starts_with("3  must be an object"), "{told:?}");
    assert!(told[1].starts_with("4  is not valid JSON"), "{told:?}");
    assert!(told[2].starts_with("5  is longer than"), "{told:?}");
    assert!(ndjson("\n\n").unwrap_err().contains("is empty"));
}

/// A source that makes its rows while it is read: nothing of it is held.
struct Endless {
    rows: u64,
    at: u64,
    offset: usize,
}

impl Endless {
    fn row(at: u64) -> Vec<u8> {
        match at {
            0 => b"phone;name;city\r\n".to_vec(),
            at => format!(
                "+7999{:07};Name {at};\u{41c}\u{43e}\u{441}\u{43a}\u{432}\u{430}\r\n",
                at % 10_000_000
            )
            .into_bytes(),
        }
    }
}

impl io::Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() && self.at <= self.rows {
            let row = Self::row(self.at);
            let length = (row.len() - self.offset).min(buffer.len() - filled);
            buffer[filled..filled + length].copy_from_slice(&row[self.offset..][..length]);
            (filled, self.offset) = (filled + length, self.offset + length);
            if self.offset == row.len() {
                (self.at, self.offset) = (self.at + 1, 0);
            }
        }
        Ok(filled)
    }
}

impl Seek for Endless {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        assert_eq!(to, io::SeekFrom::Start(0));
        (self.at, self.offset) = (0, 0);
        Ok(0)
    }
}

#[test]
fn very_many_rows_are_read_one_after_the_other() {
    let rows = std::env::var("STAMPEDE_AUDIENCE_ROWS")
        .ok()
        .and_then(|rows| rows.parse().ok())
        .unwrap_or(20_000);
    let began = Instant::now();
    let rules = Rules { most: rows as usize, ..rules(AddressKind::Phone) };
    let mut last = 0;
    let report =
        read(Endless { rows, at: 0, offset: 0 }, Format::Csv(None), None, &rules, &mut |row| {
            last = row.line;
            Ok(())
        });
    let report = report.unwrap();
    assert_eq!((report.rows as u64, report.mistakes.count, last), (rows, 0, rows + 1));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned();
    println!("{rows} rows in {:?}, {peak}", began.elapsed());
}

#[test]
fn keys_that_are_repeated_without_end_are_few_mistakes() {
    let repeated = "\"name\": 1, \"---\": 2, ".repeat(50_000);
    let text =
        format!("[{{{repeated}\"phone\": \"79991234567\"}}, {{\"phone\": \"79997654321\"}}]");
    let (rows, report) = json(&text).unwrap();
    assert_eq!((rows.len(), report.mistakes.count), (1, 20));
    let fields = "\"fields\": {}, ".repeat(3) + &"\"fields\": 7, ".repeat(50_000);
    let text = format!("[{{{fields}\"phone\": \"79991234567\"}}]");
    assert_eq!(json(&text).unwrap().1.mistakes.count, 20);
}

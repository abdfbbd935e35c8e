use std::time::Instant;

use super::*;

fn fields(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn text(source: &str) -> Template {
    Template { text: Some(source.to_owned()), ..Template::default() }
}

fn html(source: &str) -> Template {
    Template { text: Some("x".to_owned()), html: Some(source.to_owned()), ..Template::default() }
}

fn compiled(template: &Template) -> Compiled {
    Compiled::new(template, Channel::Console).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
}

fn filled(source: &str, pairs: &[(&str, &str)]) -> String {
    let filled = compiled(&text(source)).fill(&fields(pairs), &BuiltIns::default());
    filled.unwrap_or_else(|error| panic!("{source}: {error}")).text.unwrap()
}

fn filled_html(source: &str, pairs: &[(&str, &str)]) -> String {
    compiled(&html(source)).fill(&fields(pairs), &BuiltIns::default()).unwrap().html.unwrap()
}

fn mistakes(source: &str) -> Vec<(usize, usize, String)> {
    let mistakes = Compiled::new(&text(source), Channel::Console).map(|_| Vec::new());
    let mistakes = mistakes.unwrap_or_else(|mistakes| mistakes);
    mistakes.into_iter().map(|mistake| (mistake.line, mistake.column, mistake.message)).collect()
}

#[test]
fn fields_and_filters_are_filled_in() {
    let ann = [
        ("name", "ann lee"),
        ("имя", "зоя"),
        ("First_name", "Bob"),
        ("date", "2027-03-04 05:06:07 +0000"),
        ("day", "2027-03-04"),
    ];
    for (source, expected) in [
        ("Hello {{ name }}!", "Hello ann lee!"),
        ("{{name}}{{ name }}{{-name-}}", "ann leeann leeann lee"),
        ("{{ имя | capitalize }}, привет", "Зоя, привет"),
        ("{{ First_name | upcase }}", "BOB"),
        ("{{ name | upcase | downcase | capitalize }}", "Ann lee"),
        ("{{ gone | default: \"friend\" }}", "friend"),
        ("{{ gone | default: name | upcase }}", "ANN LEE"),
        ("{{ \"  x \" | strip }}.", "x."),
        ("{{ date | date: \"%d.%m.%Y %H:%M\" }}", "04.03.2027 05:06"),
        ("{{ day | date: \"%d.%m.\" }}", "04.03."),
        ("{{ '04.03.2027' | date: \"%Y-%m-%d\" }}", "2027-03-04"),
        ("{{ '04.03.2027 05:06' | date: \"%H:%M\" }}", "05:06"),
        ("{{ '2027-03-04T05:06:07Z' | date: \"%H:%M\" }}", "05:06"),
        ("{{ '2027-03-04T05:06:07+03:00' | date: \"%H:%M\" }}", "05:06"),
        ("{{ '2027-03-04 05:06' | date: \"%H:%M\" }}", "05:06"),
        ("{{ name | date: \"%d.%m.\" }}", "ann lee"),
        ("a {{- name -}} b", "aann leeb"),
        ("{{ \"}}\" }} {{ '\"' }}", "}} \""),
        ("{ {x} %} }}", "{ {x} %} }}"),
    ] {
        assert_eq!(filled(source, &ann), expected, "{source}");
    }
}

#[test]
fn truncate_counts_characters_as_people_see_them() {
    let name = [("name", "Владимир Красное Солнышко")];
    assert_eq!(filled("{{ name | truncate: 25 }}", &name), "Владимир Красное Солнышко");
    assert_eq!(filled("{{ name | truncate: 24 }}", &name), "Владимир Красное Солн...");
    assert_eq!(filled("{{ name | truncate: 9, '…' }}", &name), "Владимир…");
    assert_eq!(filled("{{ name | truncate: 8, '' }}", &name), "Владимир");
    assert_eq!(filled("{{ name | truncate }}", &[("name", &"я".repeat(50))]), "я".repeat(50));
    assert_eq!(filled("{{ name | truncate: 2, '' }}", &[("name", "👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧")]), "👨‍👩‍👧👨‍👩‍👧");
}

#[test]
fn conditions_ask_for_texts() {
    let ann = [("name", "Ann"), ("vip", "yes"), ("empty_one", ""), ("blank_one", "  ")];
    for (source, expected) in [
        ("{% if vip %}V{% else %}-{% endif %}", "V"),
        ("{% if empty_one %}V{% else %}-{% endif %}", "-"),
        ("{% if blank_one %}V{% else %}-{% endif %}", "-"),
        ("{% if gone %}V{% else %}-{% endif %}", "-"),
        ("{% unless gone %}no{% endunless %}.", "no."),
        ("{% unless gone %}no{% else %}yes{% endunless %}", "no"),
        ("{% if vip == 'yes' and name == \"Ann\" %}V{% endif %}.", "V."),
        ("{% if vip == 'no' or name contains \"nn\" %}V{% endif %}.", "V."),
        ("{% if vip != 'yes' %}1{% elsif vip <> 'no' %}2{% else %}3{% endif %}", "2"),
        ("{% if gone == '' %}V{% endif %}.", "V."),
        ("{% if gone == blank %}V{% endif %}.", "V."),
        ("{% if name == blank %}V{% endif %}.", "."),
        ("{% if empty_one == empty %}V{% endif %}.", "V."),
        ("{% case vip %}{% when 'no' %}1{% when 'yes', 'y' %}2{% else %}3{% endcase %}", "2"),
        ("{% case gone %}{% when 'no' or 'x' %}1{% else %}3{% endcase %}", "3"),
        ("{%- if vip -%} a {%- endif -%} b", "ab"),
        (
            "{% if vip %}{% if gone %}1{% else %}{% unless gone %}2{% endunless %}{% endif %}{% endif %}",
            "2",
        ),
    ] {
        assert_eq!(filled(source, &ann), expected, "{source}");
    }
}

#[test]
fn comments_are_left_out_and_raw_text_stays() {
    for (source, expected) in [
        ("a{% comment %} {{ x | nothing: [1] }} {% for %} {% endcomment %}b", "ab"),
        ("a{% raw %}{{ x }} {% if %}{% endraw %}b", "a{{ x }} {% if %}b"),
        ("a {%- comment -%} x {%- endcomment -%} b", "ab"),
        ("a {%- raw -%} x {%- endraw -%} b", "axb"),
        ("a {% raw %} x {% endraw %} b", "a  x  b"),
        ("{% raw %}{{ \"{{\" }}{% endraw %}", "{{ \"{{\" }}"),
    ] {
        assert_eq!(filled(source, &[]), expected, "{source}");
    }
    assert_eq!(filled_html("{% raw %}<b>{{ & }}</b>{% endraw %}", &[]), "<b>{{ & }}</b>");
}

#[test]
fn values_are_escaped_in_html_and_raw_in_the_text() {
    let name = [("name", "<b>Ann & \"Bob's\"</b>{{ x }}")];
    let escaped = "&lt;b&gt;Ann &amp; &quot;Bob&#39;s&quot;&lt;/b&gt;{{ x }}";
    assert_eq!(filled_html("<i>{{ name }}</i>", &name), format!("<i>{escaped}</i>"));
    assert_eq!(filled("<i>{{ name }}</i>", &name), "<i><b>Ann & \"Bob's\"</b>{{ x }}</i>");
    // Cut and changed first, escaped last: no half of an entity, none in capitals.
    assert_eq!(filled_html("{{ name | truncate: 4, '' | upcase }}", &name), "&lt;B&gt;A");
    assert_eq!(filled_html("{{ gone | default: '<hr>' }}", &name), "&lt;hr&gt;");
    assert_eq!(filled_html("{% if name contains '&' %}yes{% endif %}", &name), "yes");
    for unsafe_filter in ["raw", "escape", "safe", "html"] {
        let source = format!("{{{{ name | {unsafe_filter} }}}}");
        let told = Compiled::new(&html(&source), Channel::Console).unwrap_err();
        assert!(told[0].message.starts_with("there is no filter"), "{told:?}");
    }
}

#[test]
fn fields_that_would_be_code_or_lead_anywhere_are_told_with_their_place() {
    for (source, line, column, message) in [
        ("<p>\n<a href=\"{{ link }}\">x</a>", 2, 10, "a field in href could lead anywhere"),
        ("<a href={{ ticketUrl }}>x</a>", 1, 9, "href needs quotes"),
        ("<a href='{{ ticketUrl | upcase }}'>x</a>", 1, 10, "could lead anywhere"),
        ("<script>let name = '{{ name }}';</script>", 1, 21, "inside of <script>"),
        ("{% raw %}<a href='{% endraw %}{{ link }}'>x</a>", 1, 31, "could lead anywhere"),
        ("<a {{ name }}>x</a>", 1, 4, "in a tag"),
        ("{% if a %}<a href='{% endif %}x'>", 1, 20, "end in different places"),
        (
            "<a href='{% if a %}https://a.example/{% else %}{{ a }}{% endif %}'>x</a>",
            1,
            48,
            "could lead anywhere",
        ),
    ] {
        let told = Compiled::new(&html(source), Channel::Console).unwrap_err();
        let [one] = told.as_slice() else { panic!("{source}: {told:?}") };
        assert_eq!((one.part.as_str(), one.line, one.column), ("html", line, column), "{source}");
        assert!(one.message.contains(message), "{source}: {told:?}");
    }
    assert!(mistakes("<a href=\"{{ link }}\">").is_empty(), "a text is no HTML");
    let eve = [("link", "javascript:alert(1)"), ("id", "\"><script>"), ("vip", "1")];
    for (source, expected) in [
        (
            "<a href='https://example.com/?id={{ id }}'>",
            "<a href='https://example.com/?id=&quot;&gt;&lt;script&gt;'>",
        ),
        (
            "<a href='{% if vip %}https://a.example/{% else %}https://b.example/{% endif %}{{ vip }}'>",
            "<a href='https://a.example/1'>",
        ),
        (
            "<a title='{{ link }}' {% if vip %}class='vip'{% endif %}>{{ link }}</a>",
            "<a title='javascript:alert(1)' class='vip'>javascript:alert(1)</a>",
        ),
    ] {
        assert_eq!(filled_html(source, &eve), expected, "{source}");
    }
    let compiled = compiled(&html("<a href=\"{{ unsubscribeUrl }}\">"));
    let url = "https://example.com/u/x?a=1&b=2";
    let built_ins = BuiltIns { unsubscribe_url: Some(url), ..BuiltIns::default() };
    let filled = compiled.fill(&fields(&[]), &built_ins).unwrap().html.unwrap();
    assert_eq!(filled, "<a href=\"https://example.com/u/x?a=1&amp;b=2\">");
}

#[test]
fn the_subject_and_values_of_whatsapp_are_on_one_line() {
    let template = Template {
        subject: Some("Hello {{ name }}\r\n".to_owned()),
        text: Some("x".to_owned()),
        whatsapp_template: Some("hello".to_owned()),
        whatsapp_language: Some("en_US".to_owned()),
        whatsapp_values: vec!["{{ name }}".to_owned(), "{{ gone | default: \"-\" }}".to_owned()],
        ..Template::default()
    };
    let compiled = compiled(&template);
    let filled = compiled
        .fill(&fields(&[("name", "Ann\r\nBcc: eve@example.com\t    x")]), &BuiltIns::default());
    let filled = filled.unwrap();
    assert_eq!(filled.subject.as_deref(), Some("Hello Ann Bcc: eve@example.com x"));
    assert_eq!(filled.whatsapp_values, ["Ann Bcc: eve@example.com x", "-"]);
}

#[test]
fn built_in_fields_go_before_fields_of_the_file() {
    let template = Template {
        defaults: fields(&[("city", "Berlin"), ("address", "nobody")]),
        ..text("{{ address }} {{ ticketUrl }} {{ unsubscribeUrl }} {{ city }}")
    };
    let compiled = compiled(&template);
    let built_ins = BuiltIns { address: "+1", ticket_url: Some("t"), unsubscribe_url: Some("u") };
    let eve = fields(&[("unsubscribeUrl", "evil"), ("city", " ")]);
    assert_eq!(compiled.fill(&eve, &built_ins).unwrap().text.unwrap(), "+1 t u Berlin");
    assert_eq!(
        compiled.fields().into_iter().collect::<Vec<_>>(),
        ["address", "city", "ticketUrl", "unsubscribeUrl"]
    );
    assert_eq!(check_template(&template, Channel::Console, Some(&BTreeSet::new())), []);
    assert!(compiled.missing(&eve).is_empty());
}

#[test]
fn an_unknown_field_is_told_with_its_place_and_the_nearest_name() {
    let mut template =
        text("Hi {{ name }},\n  {% if frist_name %}{{ Name }}{% endif %}\n{{ xyzzy }}");
    let known = BTreeSet::from(["name", "first_name"].map(str::to_owned));
    let check = |template: &Template| check_template(template, Channel::Console, Some(&known));
    let told = check(&template);
    let places: Vec<_> =
        told.iter().map(|one| (one.line, one.column, one.nearest.as_deref())).collect();
    assert_eq!(places, [(2, 9, Some("first_name")), (2, 25, Some("name")), (3, 4, None)]);
    assert_eq!(told[0].message, "the field \"frist_name\" is not known; did you mean first_name?");
    assert_eq!(told[0].part, "text");
    assert!(
        told[2].message.ends_with("known are address, first_name, name, ticketUrl, unsubscribeUrl")
    );
    let compiled = compiled(&template);
    assert_eq!(
        check_template(&template, Channel::Console, None),
        [],
        "nobody knows the recipients"
    );
    // A default makes a field known, also an empty one; mistakes of the language come with it in one round.
    template.defaults = fields(&[("xyzzy", "")]);
    template.subject = Some("{{ gone }}{% for %}".to_owned());
    template.html = Some("{{ nmae }}".to_owned());
    let told: Vec<_> = check(&template).into_iter().map(|one| (one.part, one.nearest)).collect();
    let wanted = [
        ("subject", None),
        ("text", Some("first_name")),
        ("text", Some("name")),
        ("html", Some("name")),
    ];
    assert_eq!(told, wanted.map(|(part, near)| (part.to_owned(), near.map(str::to_owned))));
    assert_eq!(
        compiled.missing(&fields(&[("name", "Ann"), ("Name", "")])),
        ["frist_name", "Name", "xyzzy"]
    );
}

#[test]
fn every_mistake_of_a_template_is_told_with_line_and_column() {
    for (source, line, column, message) in [
        ("Hi {{ name", 1, 4, "is never closed; add }}"),
        ("Hi\n\n{% if x", 3, 1, "is never closed; add %}"),
        ("{{ 'x }}", 1, 1, "look for a quote"),
        ("я{{ }}", 1, 5, "is empty"),
        ("{{ a b }}", 1, 6, "b is not expected here"),
        ("{{ a | }}", 1, 8, "a filter is missing"),
        ("{{ a | upcsae }}", 1, 8, "did you mean upcase?"),
        ("{{ a | upcase: 1 }}", 1, 8, "takes 0 values"),
        ("{{ a | date }}", 1, 8, "takes 1 values"),
        ("{{ a | truncate: 1.5 }}", 1, 18, "no whole number"),
        ("{{ a | date: \"%Q%8\" }}", 1, 14, "no format of dates"),
        ("{{ a[b] }}", 1, 5, "brackets are not allowed"),
        ("{{ (1..3) }}", 1, 4, "brackets are not allowed"),
        ("{{ 5 }}", 1, 4, "fields are texts"),
        ("{{ true }}", 1, 4, "is no field"),
        ("{% for x in y %}{% endfor %}", 1, 4, "no loops"),
        ("{% assign x = 1 %}", 1, 4, "no loops, assignments"),
        ("{% include 'x' %}", 1, 4, "includes"),
        ("{% %}", 1, 1, "is an empty tag"),
        ("{% iff x %}", 1, 4, "did you mean if?"),
        ("{% if %}{% endif %}", 1, 7, "a value is missing"),
        ("{% if a > b %}{% endif %}", 1, 9, "fields are texts"),
        ("{% if a == 1 %}{% endif %}", 1, 12, "in quotes"),
        ("{% if a == true %}{% endif %}", 1, 12, "write \"true\""),
        ("{% if a = b %}{% endif %}", 1, 9, "use ==, != or contains"),
        ("{% if a | upcase %}{% endif %}", 1, 9, "filters stand in"),
        ("{% if a %}", 1, 1, "never closed; add {% endif %}"),
        ("{% if a %}{% endunless %}{% endif %}", 1, 14, "write endif"),
        ("{% endif %}", 1, 4, "closes no block"),
        ("{% else %}", 1, 4, "outside of a block"),
        ("{% if a %}{% else %}{% else %}{% endif %}", 1, 24, "its second"),
        ("{% unless a %}{% elsif b %}{% endunless %}", 1, 18, "outside of an if"),
        ("{% when 'a' %}", 1, 4, "outside of a case"),
        ("{% raw %} x", 1, 1, "add {% endraw %}"),
        ("{% comment %}", 1, 1, "add {% endcomment %}"),
        ("a\0b", 0, 0, "U+0000"),
    ] {
        let told = mistakes(source);
        let first = told.first().unwrap_or_else(|| panic!("{source} has no mistake"));
        assert_eq!((first.0, first.1), (line, column), "{source}: {told:?}");
        assert!(first.2.contains(message), "{source}: {told:?}");
    }
    assert_eq!(mistakes("{{ a b }}\n{{ 1 }}{% for %}").len(), 3, "all at once");
}

#[test]
fn the_parts_that_a_channel_needs_are_asked_for() {
    let parts = |template: &Template, channel| {
        let mistakes = Compiled::new(template, channel).err().unwrap_or_default();
        mistakes.into_iter().map(|mistake| mistake.part).collect::<Vec<_>>()
    };
    let (empty, text) = (Template::default(), text("x"));
    assert_eq!(parts(&empty, Channel::Smtp), ["subject"]);
    assert_eq!(
        parts(&Template { subject: Some("x".into()), ..Template::default() }, Channel::Smtp),
        ["text"]
    );
    assert_eq!(parts(&empty, Channel::Telegram), ["text"]);
    assert_eq!(parts(&empty, Channel::Whatsapp), ["whatsappTemplate"]);
    assert_eq!(parts(&empty, Channel::Sms), ["text"]);
    for channel in Channel::ALL.into_iter().filter(|channel| *channel != Channel::Smtp) {
        assert_eq!(parts(&text, channel), Vec::<String>::new(), "{channel:?}");
    }
    let whatsapp = Template {
        whatsapp_template: Some("x".into()),
        whatsapp_values: vec![String::new(); 51],
        ..empty
    };
    assert_eq!(parts(&whatsapp, Channel::Whatsapp), ["whatsappLanguage", "whatsappValues"]);
}

#[test]
fn texts_that_the_provider_would_refuse_are_told_before_they_are_sent() {
    let fill = |template: &Template, channel, pairs: &[(&str, &str)]| {
        Compiled::new(template, channel).unwrap().fill(&fields(pairs), &BuiltIns::default())
    };
    let name = text("{{ name }}");
    let empty = |part: &str| Err(NotFilled::Empty { part: part.to_owned() });
    assert_eq!(fill(&name, Channel::Telegram, &[]), empty("text"));
    assert_eq!(fill(&text("\u{200b}{{ name }}\n"), Channel::Sms, &[]), empty("text"));
    let bold = Template { html: Some("<b>{{ name }}</b>".to_owned()), ..Template::default() };
    assert_eq!(fill(&bold, Channel::Telegram, &[]), empty("html"), "Telegram counts what is seen");
    assert!(fill(&bold, Channel::Telegram, &[("name", "Ann")]).is_ok());
    let picture = Template { subject: Some("x".to_owned()), ..bold };
    assert!(fill(&picture, Channel::Smtp, &[]).is_ok(), "a mail may be a picture");
}

#[test]
fn templates_that_would_take_too_much_are_refused_before_they_are_parsed() {
    let nested = format!("{}x{}", "{% if a %}".repeat(3_000), "{% endif %}".repeat(3_000));
    let told = mistakes(&nested);
    assert_eq!(told.len(), 1);
    assert!(told[0].2.starts_with("has more than 200 tags, has 6000"), "{told:?}");
    assert!(mistakes(&"x".repeat((64 << 10) + 1))[0].2.contains("is longer than 65536 bytes"));
    for deep in ["{{ a[", "{{ (", "{{ a | default: "] {
        let mut long = format!("{deep}{}", deep[3..].repeat(20_000));
        long.truncate(60_000);
        assert!(!mistakes(&long).is_empty());
    }
    let open = format!("{{% raw %}}{}{{% endraw %}}", "{{ a[".repeat(190));
    assert_eq!(filled(&open, &[]), "{{ a[".repeat(190));
}

#[test]
fn the_deepest_template_that_is_allowed_fits_a_small_stack() {
    let deep = format!("{}x{}", "{% if a %}".repeat(100), "{% endif %}".repeat(100));
    let chain = format!("{{{{ a{} }}}}", " | upcase".repeat(149));
    let condition = format!("{{% if a{} %}}", " or a == 'b'".repeat(74));
    let either = format!("{}x{}", condition.repeat(60), "{% endif %}".repeat(60));
    let many = format!("{{% if a{} %}}x{{% endif %}}", " or a".repeat(149));
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    let run = thread.spawn(move || {
        for source in [deep, chain, either, many] {
            assert_eq!(filled(&source, &[("a", "x")]).to_lowercase(), "x");
        }
    });
    run.unwrap().join().unwrap();
    for long in [" | upcase".repeat(7_000), " or a".repeat(10_000)] {
        for source in [format!("{{{{ a{long} }}}}"), format!("{{% if a{long} %}}x{{% endif %}}")] {
            assert!(mistakes(&source)[0].2.starts_with("has more than 300 words"));
        }
    }
}

#[test]
fn random_templates_are_filled_or_refused_with_a_place() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let words = [
        "{{",
        "}}",
        "{%",
        "%}",
        "-",
        " ",
        "\n",
        "name",
        "имя",
        "if",
        "endif",
        "else",
        "elsif",
        "unless",
        "endunless",
        "case",
        "when",
        "endcase",
        "raw",
        "endraw",
        "comment",
        "endcomment",
        "|",
        "upcase",
        "default",
        ":",
        "'x'",
        "\"",
        "'",
        "==",
        "contains",
        "and",
        "[",
        "1",
        ".",
        "<b>",
        "€",
        "blank",
        "{% if name %}",
        "{% endif %}",
        "{{ name }}",
        "{%- raw -%}",
        "{% endraw %}",
        "truncate: 3",
        "date: '%d'",
    ];
    let mut fine = 0;
    for _ in 0..20_000 {
        let source: String =
            (0..random.usize(1..14)).map(|_| words[random.usize(..words.len())]).collect();
        match Compiled::new(&html(&source), Channel::Console) {
            Ok(compiled) => {
                fine += 1;
                match compiled.fill(&fields(&[("name", "<Ann>")]), &BuiltIns::default()) {
                    Ok(filled) => assert!(!filled.html.unwrap().contains("<Ann>"), "{source}"),
                    Err(NotFilled::Empty { .. }) => {}
                    Err(error) => panic!("{source}: {error}"),
                }
            }
            // A mistake without a place comes from the crate: the grammar has let something through.
            Err(mistakes) => {
                assert!(mistakes.iter().all(|one| one.line > 0), "{source:?}: {mistakes:?}")
            }
        }
    }
    println!("{fine} of 20000 were templates");
    assert!(fine > 500);
}

#[test]
fn filling_a_message_takes_microseconds() {
    let template = text(
        "Hello {{ name | capitalize }}! {% if vip %}Your seat is {{ seat }}.{% endif %} Stop: {{ unsubscribeUrl }}",
    );
    let compiled = compiled(&template);
    let ann = fields(&[("name", "ann"), ("vip", "1"), ("seat", "A 1")]);
    let began = Instant::now();
    for _ in 0..10_000 {
        compiled.fill(&ann, &BuiltIns::default()).unwrap();
    }
    println!("{:?} a message", began.elapsed() / 10_000);
}

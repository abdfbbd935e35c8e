# The two commands: `make run` and `make test`. Both install what is missing and ask nothing.

# Outside the clone, so that every clone on this machine shares what was compiled before.
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/stampede/target

.PHONY: run build test test-valkey lint fmt own install-run install-test clean

## run: build and start Stampede with nothing configured, and print where to look
run: install-run build
	bin/stampede serve

build: own
	@# First, and in seconds: the build script that can fail because of a dependency.
	@cargo build --release --locked --quiet -p stampede-scripts
	cargo build --release --locked --bin stampede
	@mkdir -p bin && strip --strip-debug -o bin/stampede.new "$(CARGO_TARGET_DIR)/release/stampede" && mv -f bin/stampede.new bin/stampede

## test: everything that must hold: format, lints, all tests, the broker's tests on the engine too, examples in the documentation,
## BullMQ's own clients on the engine, stickers in other people's validators, schemathesis and generated clients on the API, the gate
## page in a browser, Prometheus and Alertmanager on deploy/monitoring; at the end, the tests that passed only at the second try
test: install-test lint
	cargo nextest run --locked --workspace
	STAMPEDE_TEST_SERVER=engine cargo nextest run --locked --workspace --profile engine
	cargo test --locked --workspace --doc --quiet
	ENGINE="$(CARGO_TARGET_DIR)/debug/stampede" interop/run all
	ENGINE="$(CARGO_TARGET_DIR)/debug/stampede" interop/run web
	ENGINE="$(CARGO_TARGET_DIR)/debug/stampede" interop/run monitoring
	@scripts/flaky

## test-valkey: the broker's tests on Valkey; Debian 12 has it in its backports, Debian 13 as an ordinary package
test-valkey: own
	@scripts/install valkey-server
	STAMPEDE_TEST_SERVER=valkey cargo nextest run --locked --workspace --profile valkey

lint: own
	cargo fmt --all --check
	@cargo build --locked --quiet -p stampede-scripts
	cargo clippy --locked --workspace --all-targets -- -D warnings

fmt:
	cargo fmt --all

# Cargo compares only times of files: after another clone has built, it would take that clone's crates for ours.
own:
	@mkdir -p "$(CARGO_TARGET_DIR)"
	@[ "$$(cat "$(CARGO_TARGET_DIR)/built-by" 2>/dev/null)" = "$(CURDIR)" ] || { \
		find Cargo.toml assets crates docs examples stubs -type f -exec touch {} + && echo "$(CURDIR)" > "$(CARGO_TARGET_DIR)/built-by"; }

install-run:
	@scripts/install cargo cc

install-test:
	@scripts/install cargo rustfmt clippy cc redis-server postgres nginx pdftotext zbarimg qpdf unzip jq curl openssl node npm python3-venv chromium ffmpeg webpinfo promtool amtool cargo-nextest

clean:
	rm -rf bin "$(CARGO_TARGET_DIR)"

//! `stampede accounts`: accounts of campaigns of a running server, through its API.

use anyhow::{Context, Result, bail};
use stampede_client::{Client, NewAccount};
use stampede_model::campaign::Rate;
use stampede_model::{Printable, Role};
use stampede_wire::campaigns::Account;

use crate::cli::{AccountCreate, Accounts, AccountsCommand};
use crate::commands::campaigns::{pacing, read, show};
use crate::commands::session::Session;
use crate::commands::table::Table;
use crate::settings::Settings;

pub(crate) async fn run(settings: Settings, options: Accounts) -> Result<()> {
    let account = match &options.command {
        AccountsCommand::Create(create) => Some(new_account(create)?),
        _ => None,
    };
    let session = Session::open(&settings, &options.server, Role::Admin).await?;
    let done = carry_out(&session.client, &options, account).await;
    session.close().await?;
    done
}

async fn carry_out(client: &Client, options: &Accounts, account: Option<NewAccount>) -> Result<()> {
    let json = options.json;
    match &options.command {
        AccountsCommand::List => show(json, &all(client).await?, |accounts| list(accounts)),
        AccountsCommand::Create(_) => {
            let account = account.context("an account")?;
            let made = client.create_account(&account).await?;
            show(json, &made, |account| println!("{}", account.id))
        }
        AccountsCommand::Show(which) => show(json, &client.account(&which.account).await?, one),
        AccountsCommand::Check(which) => {
            let check = client.check_account(&which.account).await?;
            show(json, &check, |check| println!("{}", Printable::line(&check.message)))?;
            if check.ok { Ok(()) } else { bail!("the provider does not accept the account") }
        }
        AccountsCommand::Delete(which) => {
            client.delete_account(&which.account).await?;
            println!("{}", if json { "{\"deleted\":true}" } else { "deleted" });
            Ok(())
        }
    }
}

fn new_account(create: &AccountCreate) -> Result<NewAccount> {
    let credentials = match &create.credentials {
        None => None,
        Some(path) => {
            let what = || format!("the credentials in {} must be JSON", path.display());
            Some(serde_json::from_slice(&read(path)?).with_context(what)?)
        }
    };
    Ok(NewAccount {
        id: create.id.clone(),
        name: create.name.clone(),
        channel: create.channel,
        settings: create.settings.clone(),
        credentials,
        pacing: pacing(create.limit, create.per),
        country: create.country.clone(),
        time_zone: create.time_zone.clone(),
    })
}

/// All accounts, sorted by id.
async fn all(client: &Client) -> Result<Vec<Account>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = client.accounts(after.as_ref()).await?;
        all.extend(page.accounts);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(all),
        }
    }
}

fn list(accounts: &[Account]) {
    let mut table = Table::new(["id", "name", "channel", "owner", "limit", "state"]);
    for account in accounts {
        table.row(vec![
            account.id.to_string(),
            account.name.clone(),
            account.channel.as_str().to_owned(),
            owner(account),
            limit(account),
            state(account),
        ]);
    }
    table.print("there are no accounts");
}

fn one(account: &Account) {
    for (field, value) in [
        ("id", account.id.to_string()),
        ("name", account.name.clone()),
        ("channel", account.channel.as_str().to_owned()),
        ("owner", owner(account)),
        ("settings", account.settings.to_string()),
        ("limit", limit(account)),
        ("state", state(account)),
        ("created", account.created_at.strftime("%Y-%m-%d %H:%M:%S").to_string()),
    ] {
        println!("{field:<21}{}", Printable::line(&value));
    }
}

fn owner(account: &Account) -> String {
    account.owner.clone().unwrap_or_else(|| "everybody".to_owned())
}

fn limit(account: &Account) -> String {
    let Rate { max, per_ms } = account.pacing.limit.unwrap_or(Rate::DEFAULT);
    format!("{max} in {} s", per_ms as f64 / 1_000.0)
}

fn state(account: &Account) -> String {
    match &account.blocked_reason {
        Some(reason) => format!("blocked: {reason}"),
        None => "may send".to_owned(),
    }
}

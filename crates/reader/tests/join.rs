//! Joins of two published tables: asked over folders and a mirror, held against a plain reading of SQL, refused, kept.

use std::collections::BTreeMap;

use counterfoil_mirror::site::{Fetch, Folder, write};
use counterfoil_mirror::wire::Standing;
use counterfoil_mirror::{MemoryShelf, reply};
use counterfoil_proof::bytes::Writer;
use counterfoil_proof::{Column, Definition, NodesOf, Owner, Refusal, Scheme, Type, Value};
use counterfoil_publish::{Edit, MemoryLedger, Plan, Publication, Secrets};
use counterfoil_reader::{Error, JoinReading, KeptJoin, Terms, place_of, read, read_join};

/// Whole numbers or NULL.
type Row = Vec<Option<i64>>;

struct Table {
    publication: Publication<MemoryLedger>,
    rows: Vec<Row>,
    now: u64,
}

fn values(row: &Row) -> Vec<Value> {
    row.iter().map(|value| value.map_or(Value::Null, Value::Integer)).collect()
}

impl Table {
    fn new(number: u8, name: &str, columns: &[&str], orders: Vec<Vec<u16>>, filters: Vec<u8>, scheme: Scheme) -> Self {
        let columns = columns.iter().map(|name| Column { name: (*name).into(), kind: Type::Integer }).collect();
        // Those with filters have nodes, too.
        let nodes = filters.iter().map(|_| NodesOf { order: 0, columns: vec![1] }).collect();
        let definition = Definition { table: [number; 16], name: name.into(), columns, orders, scheme, nodes, filters };
        let plan = Plan { definition, now: 1_000_000, every: 0, renew: 0, max_age: u64::MAX, expires: 1 << 50 };
        // One owner: one root, another key of each table.
        let mut entropy = [7; 96];
        entropy[32..].fill(number);
        let secrets = Secrets::from_entropy(&entropy).expect("keys");
        let publication = Publication::create(MemoryLedger::default(), plan, secrets, &[]).expect("a publication");
        Self { publication, rows: Vec::new(), now: 1_000_000 }
    }

    fn insert(&mut self, rows: Vec<Row>) {
        let insert = rows.iter().map(values).collect();
        self.publication.edit(Edit { insert, ..Edit::default() }).expect("rows");
        self.rows.extend(rows);
    }

    fn close(&mut self) {
        self.now += 1000;
        self.publication.close_period(self.now).expect("a summary");
    }

    fn write(&mut self, folder: &std::path::Path) {
        let summaries = self.publication.summaries().expect("summaries");
        write(self.publication.shelf(), self.publication.manifest(), &summaries, folder).expect("a site");
    }

    fn served(&mut self) -> Served {
        let summaries = self.publication.summaries().expect("summaries");
        let (manifest, shelf) = (self.publication.manifest().to_vec(), self.publication.shelf().clone());
        Served { manifest, summaries, shelf, spoil: None }
    }
}

/// A mirror that runs as a program, in memory.
#[derive(Clone)]
struct Served {
    manifest: Vec<u8>,
    summaries: Vec<Vec<u8>>,
    shelf: MemoryShelf,
    /// What it does to its answers.
    spoil: Option<fn(&mut Vec<u8>)>,
}

impl Fetch for Served {
    fn fetch(&mut self, path: &str, _most: usize) -> Result<Option<Vec<u8>>, String> {
        Ok(match path {
            "manifest" => Some(self.manifest.clone()),
            "head" => Some(Standing { last: self.summaries.len() as u64 - 1, first: 0 }.to_bytes()),
            "summaries/0" => {
                let mut writer = Writer::default();
                self.summaries.iter().for_each(|summary| {
                    writer.string(summary);
                });
                Some(writer.0)
            }
            _ => None,
        })
    }

    fn ask(&mut self, _path: &str, question: &[u8], _most: usize) -> Result<Option<Vec<u8>>, String> {
        let mut answer = reply(&mut self.shelf, question).map_err(|error| error.to_string())?;
        self.spoil.iter().for_each(|spoil| spoil(&mut answer));
        Ok(Some(answer))
    }
}

/// Orders of customers: some without one, some of customers that are not there.
fn world() -> (Table, Table) {
    signed(Scheme::PerRecord, Scheme::PerRecord)
}

fn signed(first: Scheme, second: Scheme) -> (Table, Table) {
    let mut orders = Table::new(1, "orders", &["id", "customer", "amount"], vec![vec![0]], Vec::new(), first);
    let columns = ["id", "customer", "region"];
    let mut customers = Table::new(2, "customers", &columns, vec![vec![0], vec![1, 0]], vec![1], second);
    orders.insert((0..300).map(|at| vec![Some(at), (at % 7 > 0).then_some(at * 37 % 501), Some(at % 10)]).collect());
    customers.insert((0..250).map(|at| vec![Some(1000 + at), Some(at * 2), Some(at % 4)]).collect());
    // Some with two rows, and one of no customer.
    customers.insert((0..20).map(|at| vec![Some(2000 + at), Some(at * 20), Some(9)]).collect());
    customers.insert(vec![vec![Some(3000), None, Some(5)]]);
    orders.close();
    customers.close();
    (orders, customers)
}

fn terms(owner: Owner) -> Terms {
    Terms { owner, now: 1_010_000, clock_error: 5, max_age: u64::MAX, hints: true }
}

fn ask(first: &mut dyn Fetch, second: &mut dyn Fetch, sql: &str, owner: Owner) -> Result<JoinReading, Error> {
    read_join(first, second, sql, &terms(owner), [&mut None, &mut None])
}

/// What SQL says, read plainly: pairs, and rows without one for LEFT JOIN.
fn joined(
    orders: &[Row],
    customers: &[Row],
    is_left: bool,
    on: impl Fn(&Row, &Row) -> bool,
    condition: impl Fn(&Row) -> bool,
) -> BTreeMap<Row, usize> {
    let mut found = BTreeMap::new();
    for order in orders {
        let matches: Vec<&Row> = customers
            .iter()
            .filter(|customer| order[1].is_some() && order[1] == customer[1] && on(order, customer))
            .collect();
        let nulls = vec![None; 3];
        let others = if matches.is_empty() && is_left { vec![&nulls] } else { matches };
        for other in others {
            let row = [&order[..], other].concat();
            if condition(&row) {
                *found.entry(row).or_default() += 1;
            }
        }
    }
    found
}

fn counted(reading: &JoinReading) -> BTreeMap<Row, usize> {
    let mut found = BTreeMap::new();
    for row in &reading.table.rows {
        let plain = |value: &Value| if let Value::Integer(value) = value { Some(*value) } else { None };
        *found.entry(row.iter().map(plain).collect()).or_default() += 1;
    }
    found
}

#[test]
fn pairs_and_rows_without_one_are_those_of_a_plain_reading() {
    let schemes = [Scheme::PerRecord, Scheme::PerAttribute, Scheme::Group(2), Scheme::Group(16)];
    // Both tables in one way, and each in another one.
    for (at, scheme) in schemes.into_iter().enumerate() {
        pairs_and_rows_without_one(signed(scheme, scheme));
        pairs_and_rows_without_one(signed(scheme, schemes[(at + 1) % 4]));
    }
}

fn pairs_and_rows_without_one((mut orders, mut customers): (Table, Table)) {
    let owner = orders.publication.owner();
    assert_eq!(owner, customers.publication.owner());
    let root = tempfile::tempdir().expect("a folder");
    for table in [&mut orders, &mut customers] {
        let place = place_of(&owner, &table.publication.definition().name);
        table.write(&root.path().join(place));
    }
    type On = fn(&Row, &Row) -> bool;
    type Condition = fn(&Row) -> bool;
    let always: On = |_, _| true;
    let cases: [(&str, bool, On, Condition); 7] = [
        ("", false, always, |_| true),
        ("", true, always, |_| true),
        (" WHERE o.id BETWEEN 20 AND 90", false, always, |row| (Some(20)..=Some(90)).contains(&row[0])),
        (" AND c.region = 9 WHERE o.id < 200", true, |_, c| c[2] == Some(9), |row| row[0] < Some(200)),
        (" AND amount > 3 WHERE o.id < 200", true, |o, _| o[2] > Some(3), |row| row[0] < Some(200)),
        (" AND amount > 3 WHERE region = 1", false, |o, _| o[2] > Some(3), |row| row[5] == Some(1)),
        (" WHERE c.id IS NULL AND o.id >= 100", true, always, |row| row[3].is_none() && row[0] >= Some(100)),
    ];
    for (more, is_left, on, condition) in cases {
        let join = if is_left { "LEFT JOIN" } else { "JOIN" };
        let sql = format!("SELECT * FROM orders o {join} customers AS c ON o.customer = c.customer{more}");
        let expected = joined(&orders.rows, &customers.rows, is_left, on, condition);
        assert!(!expected.is_empty());
        let folder = || Folder(root.path().into());
        let by_files = ask(&mut folder(), &mut folder(), &sql, owner).expect("an answer");
        let by_program = ask(&mut orders.served(), &mut customers.served(), &sql, owner).expect("an answer");
        for reading in [&by_files, &by_program] {
            assert_eq!(counted(reading), expected, "{sql}");
        }
        assert_eq!(by_files.table, by_program.table);
        assert!(by_files.plan.contains("customers: order 1 by (customer, id), value by value, with filters"));
        let kept = KeptJoin::from_bytes(&by_files.kept.to_bytes()).expect("what was kept");
        assert!(KeptJoin::are(&by_files.kept.to_bytes()));
        assert_eq!(kept.check(&owner, 5).expect("still right"), (by_files.table, by_files.verdict));
    }
}

#[test]
fn aggregates_sorting_limits_and_names() {
    let (mut orders, mut customers) = world();
    let owner = orders.publication.owner();
    let mut ask = |sql: &str| ask(&mut orders.served(), &mut customers.served(), sql, owner);
    let all = ask("SELECT count(*), sum(amount) FROM orders JOIN customers ON orders.customer = customers.customer");
    let row = &all.expect("an answer").table.rows[0];
    let join = "FROM orders o JOIN customers c ON c.customer = o.customer";
    let rows = ask(&format!("SELECT amount, region {join}")).expect("an answer").table.rows;
    let sum: i64 = rows.iter().map(|row| if let Value::Integer(amount) = row[0] { amount } else { 0 }).sum();
    assert_eq!(*row, [Value::Integer(rows.len() as i64), Value::Integer(sum)]);
    let sorted =
        ask(&format!("SELECT DISTINCT c.region, o.amount {join} ORDER BY region DESC, amount LIMIT 3 OFFSET 1"));
    let rows = sorted.expect("an answer").table.rows;
    let region = |row: &Vec<Value>| if let Value::Integer(region) = row[0] { region } else { 10 };
    assert!(rows.len() == 3 && region(&rows[0]) == 9 && rows.is_sorted_by_key(|row| -region(row)));
    let grouped = ask(&format!("SELECT region, count(*), sum(amount) {join} GROUP BY region ORDER BY 1"));
    let plain = ask(&format!("SELECT region, amount {join}")).expect("an answer").table.rows;
    let mut groups: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for row in &plain {
        let [Value::Integer(amount), region] = [&row[1], &row[0]] else { panic!("an amount") };
        let group = groups.entry(if let Value::Integer(region) = region { *region } else { -1 }).or_default();
        (group.0, group.1) = (group.0 + 1, group.1 + amount);
    }
    let groups = groups.into_iter().map(|(region, (count, sum))| [region, count, sum].map(Value::Integer));
    assert_eq!(grouped.expect("an answer").table.rows, groups.collect::<Vec<_>>());
    let qualified = ask(&format!("SELECT c.* {join} WHERE o.id = 1")).expect("an answer").table;
    assert_eq!(qualified.names, ["id", "customer", "region"]);
    for refused in [
        "SELECT id FROM orders o JOIN customers c ON o.customer = c.customer",
        "SELECT * FROM orders JOIN customers ON region = amount",
        "SELECT * FROM orders JOIN customers ON orders.customer < customers.customer",
        "SELECT * FROM orders x JOIN customers x ON x.customer = x.customer",
        "SELECT * FROM orders RIGHT JOIN customers ON orders.customer = customers.customer",
        "SELECT * FROM orders JOIN customers USING (customer)",
        "SELECT * FROM orders, customers",
        "SELECT * FROM orders JOIN customers ON orders.customer = customers.customer JOIN others ON TRUE",
        "SELECT * FROM orders",
        "SELECT * FROM orders o JOIN others c ON o.customer = c.customer",
        "SELECT z.* FROM orders o JOIN customers c ON o.customer = c.customer",
    ] {
        assert!(matches!(ask(refused), Err(Error::Sql(_))), "{refused}");
    }
    // Nothing can match: nobody is asked, and no value is looked for where none is there.
    let none = ask(&format!("SELECT * {join} WHERE o.id < 0 AND o.id > 0")).expect("no rows");
    assert_eq!((none.table.rows.len(), none.verdict.signatures), (0, 0));
    let none = ask("SELECT count(*) FROM orders o LEFT JOIN customers c ON o.customer = c.customer WHERE o.id = 7");
    let none = none.expect("a row without a value");
    assert_eq!((&none.table.rows[0][0], none.verdicts[1].signatures), (&Value::Integer(1), 0));
}

#[test]
fn one_table_has_totals_and_filters() {
    let (_, mut customers) = world();
    let owner = customers.publication.owner();
    let folder = tempfile::tempdir().expect("a folder");
    customers.write(folder.path());
    let sum: i64 = customers.rows.iter().filter_map(|row| row[1]).sum();
    let expected = [customers.rows.len() as i64, sum].map(Value::Integer);
    let sql = "SELECT count(*), sum(customer) FROM customers";
    for fetch in [&mut Folder(folder.path().into()) as &mut dyn Fetch, &mut customers.served()] {
        let reading = read(fetch, sql, &terms(owner), &mut None).expect("an answer");
        assert!(reading.plan.contains("by signed totals") && reading.verdict.signatures < 40, "{}", reading.plan);
        assert_eq!((reading.table.rows.len(), &reading.table.rows[0][..]), (1, &expected[..]));
    }
    let sql = "SELECT count(*) FROM customers a LEFT JOIN customers b ON a.id = b.customer WHERE b.id IS NULL";
    let folder = || Folder(folder.path().into());
    let reading = ask(&mut folder(), &mut folder(), sql, owner).expect("an answer");
    assert!(reading.plan.contains("with filters"), "{}", reading.plan);
    let is_alone = |row: &&Row| !customers.rows.iter().any(|other| other[1].is_some() && other[1] == row[0]);
    assert_eq!(reading.table.rows, [[Value::Integer(customers.rows.iter().filter(is_alone).count() as i64)]]);
}

#[test]
fn a_table_joined_with_itself() {
    let (mut orders, _) = world();
    let mut tree = Table::new(3, "tree", &["id", "parent"], vec![vec![0]], vec![0], Scheme::Group(4));
    tree.insert((0..50).map(|at| vec![Some(at), (at > 0).then_some(at / 2)]).collect());
    tree.close();
    let owner = orders.publication.owner();
    let sql = "SELECT count(*) FROM tree child LEFT JOIN tree parent ON child.parent = parent.id WHERE parent.id < 3";
    let reading = ask(&mut tree.served(), &mut tree.served(), sql, owner).expect("an answer");
    // 1 and 2..=5; 0 has none.
    assert_eq!(reading.table.rows, [[Value::Integer(5)]]);
    orders.close();
}

#[test]
fn the_answer_is_as_old_as_the_older_table() {
    let (mut orders, mut customers) = world();
    let owner = orders.publication.owner();
    let mut old = customers.served();
    customers.insert(vec![vec![Some(4000), Some(37), Some(3)]]);
    customers.close();
    orders.close();
    orders.close();
    let sql = "SELECT count(*) FROM orders o JOIN customers c ON o.customer = c.customer WHERE o.id = 1";
    let reading = ask(&mut orders.served(), &mut old, sql, owner).expect("an answer");
    assert_eq!(reading.table.rows, [[Value::Integer(0)]]);
    assert_eq!(reading.verdicts.map(|verdict| verdict.as_of), [1_003_000, 1_001_000]);
    assert_eq!((reading.verdict.as_of, reading.verdict.age), (1_001_000, 9005));
    let reading = ask(&mut orders.served(), &mut customers.served(), sql, owner).expect("an answer");
    assert_eq!((reading.table.rows[0][0].clone(), reading.verdict.as_of), (Value::Integer(1), 1_002_000));
    // Too old for what was asked, be it one of both.
    for (first, second) in [(&mut orders.served(), &mut old.clone()), (&mut orders.served(), &mut old.clone())] {
        let terms = Terms { max_age: 9000, ..terms(owner) };
        let refused = read_join(first, second, sql, &terms, [&mut None, &mut None]);
        assert!(matches!(refused, Err(Error::Refused(Refusal::Stale(_)))));
    }
    // Filters of before with summaries of now: the insert is told there.
    let mut mixed = customers.served();
    mixed.shelf = old.shelf.clone();
    assert!(matches!(ask(&mut orders.served(), &mut mixed, sql, owner), Err(Error::Refused(Refusal::Stale(_)))));
    // What was seen of either is not taken back.
    let (mut a, mut b) = (None, None);
    read_join(&mut orders.served(), &mut customers.served(), sql, &terms(owner), [&mut a, &mut b]).expect("an answer");
    let refused = read_join(&mut orders.served(), &mut old, sql, &terms(owner), [&mut a, &mut b]);
    assert!(matches!(refused, Err(Error::Refused(Refusal::Stale(_)))));
}

#[test]
fn a_hostile_mirror_of_either_table_is_refused() {
    let (mut orders, mut customers) = world();
    let owner = orders.publication.owner();
    let sql = "SELECT * FROM orders o LEFT JOIN customers c ON o.customer = c.customer WHERE o.id < 60";
    let spoils: [fn(&mut Vec<u8>); 4] = [
        |answer| answer[40] ^= 1,
        |answer| {
            let at = answer.len() / 2;
            answer[at] ^= 1;
        },
        |answer| answer.truncate(answer.len() / 2),
        |answer| answer.push(0),
    ];
    for spoil in spoils {
        let (mut first, mut second) = (orders.served(), customers.served());
        second.spoil = Some(spoil);
        assert!(matches!(ask(&mut first, &mut second, sql, owner), Err(Error::Refused(_))));
        (first.spoil, second.spoil) = (Some(spoil), None);
        assert!(matches!(ask(&mut first, &mut second, sql, owner), Err(Error::Refused(_))));
    }
    // Another owner's table of this name, and the tables the wrong way round.
    assert!(ask(&mut orders.served(), &mut customers.served(), sql, Owner::from_bytes([1; 32])).is_err());
    assert!(ask(&mut customers.served(), &mut orders.served(), sql, owner).is_err());
    let kept = ask(&mut orders.served(), &mut customers.served(), sql, owner).expect("an answer");
    let (bytes, rows) = (kept.kept.to_bytes(), kept.table.rows);
    for at in (0..bytes.len()).step_by(311) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        if let Ok(kept) = KeptJoin::from_bytes(&changed)
            && let Ok((table, _)) = kept.check(&owner, 5)
        {
            assert!(table.rows == rows || kept.sql() != sql, "byte {at}");
        }
        assert!(KeptJoin::from_bytes(&bytes[..at]).is_err());
    }
}

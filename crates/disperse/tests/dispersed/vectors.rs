//! The bytes of SPEC.md, "disperse: fragments at clouds".

use counterfoil_disperse::coding::cells::Cells;
use counterfoil_disperse::coding::field::Element;
use counterfoil_disperse::coding::orders::Orders;
use counterfoil_disperse::coding::places::Places;
use counterfoil_disperse::coding::shares::Coefficients;
use counterfoil_disperse::coding::tags::Tags;
use counterfoil_disperse::fragments::Data;
use counterfoil_disperse::{Catalogue, Claim, Coder, Coding, Epoch, Placement, Purpose, Records, Scope, Secret, Told};

use crate::clouds::declaration;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The secret of all vectors: the bytes 0 to 31.
fn secret() -> Secret {
    Secret::new(std::array::from_fn(|at| at as u8))
}

#[test]
fn bytes_are_those_of_the_specification() {
    let (secret, epoch) = (secret(), Epoch([0x11; 16]));
    let scope = Scope { epoch, ..Scope::column(1) };
    let key = secret.derive(Purpose::Seal, &scope);
    let mut cell = Vec::new();
    Cells::new(&key, &[0x22; 16], 1).seal(7, Some(b"Ada"), &mut cell);
    let tags = Tags::new(secret.derive(Purpose::Tag, &Scope::column(1)));
    let orders = Orders::new(&secret.derive(Purpose::Order, &Scope::column(2)));
    let places = Places::new(&secret.derive(Purpose::Places, &Scope::provider(0)));
    let shares = Coefficients::new(&secret.derive(Purpose::Shares, &Scope { part: 16, epoch, ..Scope::column(2) }), 2);
    let x = Element::reduce(3);
    let coder = Coder::new(declaration(3, 1, 1), Placement::plan(&declaration(3, 1, 1)).expect("a placement"), secret);
    let told = [
        hex(key.expose()),
        hex(&cell),
        hex(&tags.of(b"Ada")),
        hex(&tags.of_prefix(2, "Ad")),
        hex(&tags.of_null(7)),
        hex(&orders.stored(7, 500)),
        hex(&orders.asked(500)[..17]),
        format!("{:016x}", places.place(0x11_1111 << 40 | 7)),
        (Element::from_signed(-5) + shares.hiding(7, x)).number().to_string(),
        coder.table_name(0).as_str().to_owned(),
        coder.column_name(0, 1, Coding::Tag).as_str().to_owned(),
    ];
    let spec = include_str!("../../../../SPEC.md");
    for told in told {
        assert!(spec.contains(&format!("`{told}`")), "SPEC.md does not say `{told}`");
    }
}

#[test]
fn the_catalogue_is_that_of_the_specification() {
    let spec = include_str!("../../../../SPEC.md");
    let secret = spec.split("id = `33` thirty-two times: secret `").nth(1).expect("the secret");
    let byte = |at: usize| u8::from_str_radix(&secret[2 * at..2 * at + 2], 16).expect("a byte");
    let catalogue = Catalogue::new(Secret::new(std::array::from_fn(byte)));
    let part: Records = [(b"h".to_vec(), b"hi".to_vec().into())].into();
    let mut salt = 0x43;
    let draw = || {
        salt += 1;
        Ok::<_, ()>([salt; 16])
    };
    let (entries, _) = catalogue.code([0x22; 16], 1, &part, &Told::default(), draw).expect("salts");
    let Data::Strings(strings) = &entries.columns[0].1 else { panic!("entries") };
    let claim = Claim { client: [0x55; 16], version: 300, still: 30 };
    let claimed = catalogue.code_claim([0x22; 16], claim, [0x66; 16]);
    let Data::Strings(claims) = &claimed.columns[0].1 else { panic!("an entry") };
    for told in [catalogue.name().as_str().to_owned(), hex(strings.get(0)), hex(claims.get(0))] {
        assert!(spec.contains(&format!("`{told}`")), "SPEC.md does not say `{told}`");
    }
}

//! What the paper took, and what we go for, in seconds: INSERT, SELECT, SELECT ORDER BY, SELECT SUM(id).

/// A line of a table: what it is, and its four numbers, as far as they are told.
pub type Line = (&'static str, [f64; 4]);

/// Tables II to VI. Of Table II what is called overall, with all that is printed.
pub const PAPER: [Line; 11] = [
    ("paper: memory (II)", [245.30, 1.54, 3.56, 2.54]),
    ("paper: file (II)", [400.17, 0.65, 2.80, 1.57]),
    ("paper: memory, encrypted (III)", [65_685.0, 114.12, 116.12, 110.70]),
    ("paper: Raspberry Pi, file (IV)", [19_999.0, 21.91, 30.39, 83.81]),
    ("paper: Raspberry Pi, file, dispersed (IV)", [30_749.0, 376.30, 389.22, 490.28]),
    ("paper: Raspberry Pi, clouds, dispersed (IV)", [262_391.0, 428.33, 428.90, 443.23]),
    ("paper: file, dispersed (V)", [815.30, 11.99, 12.82, 14.51]),
    ("paper: clouds, dispersed (V)", [17_972.0, 13.54, 14.11, 14.92]),
    ("paper: clouds, dispersed and encrypted (V)", [224_877.0, 444.68, 444.50, 80.67]),
    ("paper: SQLite, memory (VI)", [12.27, 0.24, 6.60, 0.12]),
    ("paper: SQLite, file (VI)", [10.83, 0.26, 6.75, 0.13]),
];

/// What we go for.
pub const GOALS: [Line; 2] =
    [("goal: memory, encrypted", [10.0, 2.0, 3.0, 0.1]), ("goal: clouds, encrypted", [10.0, 4.0, 5.0, 0.1])];

/// Figure 8, by what its tables say: how many times longer each way takes than plain memory with local processing.
pub const OVERHEADS: [(&str, [f64; 4]); 4] = [
    ("memory", [1.0, 1.0, 1.0, 1.0]),
    ("memory, encrypted", [65_685.0 / 245.30, 114.12 / 0.09, 116.12 / 2.09, 110.70 / 1.09]),
    ("clouds, dispersed", [17_972.0 / 245.30, 13.54 / 0.09, 14.11 / 2.09, 14.92 / 1.09]),
    ("clouds, dispersed, encrypted", [224_877.0 / 245.30, 444.68 / 0.09, 444.50 / 2.09, 80.67 / 1.09]),
];

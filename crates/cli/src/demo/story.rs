//! What is told, in order.

use super::{Stage, say};
use crate::failure::Result;

const QUESTIONS: [(&str, &str); 5] = [
    (
        "1. Which airlines flew most, and how late did they arrive?",
        "SELECT a.name AS airline, count(*) AS flights, round(avg(f.arr_delay), 1) AS minutes_late
     FROM flights f JOIN airlines a ON a.carrier = f.carrier
     GROUP BY a.name ORDER BY flights DESC LIMIT 5",
    ),
    (
        "2. When is a good hour to leave?",
        "SELECT hour, count(*) AS flights, round(avg(dep_delay), 1) AS minutes_late
     FROM flights WHERE dep_time IS NOT NULL
     GROUP BY hour ORDER BY minutes_late LIMIT 5",
    ),
    (
        "3. Where do the longest flights go?",
        "SELECT DISTINCT p.name AS airport, f.distance AS miles
     FROM flights f JOIN airports p ON p.faa = f.dest
     ORDER BY miles DESC LIMIT 5",
    ),
    (
        "4. What does rain cost?",
        "SELECT CASE WHEN w.precip > 0 THEN 'rain' ELSE 'dry' END AS weather,
            count(*) AS flights, round(avg(f.dep_delay), 1) AS minutes_late
     FROM flights f JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour
     GROUP BY 1 ORDER BY 1",
    ),
    (
        "5. Which are the oldest planes still flying?",
        "SELECT p.tailnum, p.year, p.manufacturer, count(*) AS flights
     FROM planes p JOIN flights f ON f.tailnum = p.tailnum
     WHERE p.year IS NOT NULL
     GROUP BY p.tailnum, p.year, p.manufacturer ORDER BY p.year, p.tailnum LIMIT 5",
    ),
];

impl Stage {
    pub(super) fn play(&self, kept: bool) -> Result<()> {
        self.create()?;
        self.import()?;
        self.questions()?;
        self.trick_of_the_byte()?;
        self.trick_of_yesterday()?;
        self.restore()?;
        self.close(kept)
    }

    fn create(&self) -> Result<()> {
        say("A key, and a sealed database")?;
        say("----------------------------")?;
        self.show(&["keygen", "-o", "flights.key"])?;
        self.show(&["init", "flights.db"])
    }

    fn import(&self) -> Result<()> {
        say("\nReal flights: all that left New York in January 2013")?;
        say("----------------------------------------------------")?;
        self.show(&["import", "flights.db", "airlines", "airlines.csv", "--create", "--key", "carrier"])?;
        self.show(&["import", "flights.db", "airports", "airports.csv", "--create", "--key", "faa", "--null", "NA"])?;
        self.show(&["import", "flights.db", "planes", "planes.csv", "--create", "--key", "tailnum", "--null", "NA"])?;
        self.show(&["import", "flights.db", "weather", "weather.csv.gz", "--create", "--null", "NA"])?;
        self.show(&["import", "flights.db", "flights", "flights-2013-01.csv.gz", "--create", "--null", "NA"])?;
        let (plain, sealed) = (self.count("airlines.csv", "JetBlue")?, self.count("flights.db", "JetBlue")?);
        say(&format!("\n\"JetBlue\" stands {plain} time in airlines.csv, and {sealed} times in flights.db."))
    }

    fn questions(&self) -> Result<()> {
        say("\nFive questions")?;
        say("--------------")?;
        QUESTIONS.iter().try_for_each(|(question, sql)| self.ask(question, sql))?;
        say("\nA backup, for later:")?;
        self.show(&["backup", "flights.db", "backup.db"])
    }

    fn trick_of_the_byte(&self) -> Result<()> {
        say("\nTrick one: change the file")?;
        say("--------------------------")?;
        let at = self.byte_of_a_table()?;
        say(&format!("One bit of byte {at} is turned over, in the middle of a table's page."))?;
        self.flip("flights.db", at)?;
        self.show_refused(&["flights.db", "SELECT max(time_hour), max(tailnum), max(air_time) FROM flights"])?;
        say("\nOther tables go on, and `verify` finds every page that is not what it was:")?;
        self.show(&["flights.db", "SELECT name FROM airlines WHERE carrier = 'B6'"])?;
        self.show_refused(&["verify", "flights.db"])?;
        say("\nThe bit is turned back, and all is well:")?;
        self.flip("flights.db", at)?;
        self.show(&["verify", "flights.db"])
    }

    fn trick_of_yesterday(&self) -> Result<()> {
        say("\nTrick two: put yesterday's file back")?;
        say("------------------------------------")?;
        say("Keep a copy, wait for a change, put the copy back. Nothing in the copy is wrong: it is only old.")?;
        self.copy("flights.db", "yesterday.db")?;
        self.show(&["flights.db", "DELETE FROM flights WHERE carrier = 'UA'"])?;
        self.copy("flights.db", "today.db")?;
        self.copy("yesterday.db", "flights.db")?;
        self.show_refused(&["flights.db", "SELECT count(*) FROM flights"])
    }

    fn restore(&self) -> Result<()> {
        say("\nA backup that works")?;
        say("-------------------")?;
        say(
            "Going back on purpose is something else: it takes the key, it is noted, and every other copy ends with it.",
        )?;
        self.show(&["restore", "backup.db", "flights.db"])?;
        self.show(&["flights.db", "SELECT count(*) AS flights FROM flights", "--format", "table"])?;
        self.show_refused(&["today.db", "SELECT count(*) FROM flights"])
    }

    fn close(&self, kept: bool) -> Result<()> {
        say(PROTECTED)?;
        if kept {
            let folder = self.folder.display();
            say(&format!(
                "Three commands to try, in {folder} after\n  \
                 export COUNTERFOIL_KEY_FILE={folder}/flights.key COUNTERFOIL_STATE_DIR={folder}/state\n\n  \
                 counterfoil flights.db\n  \
                 counterfoil inspect flights.db --svg map.svg\n  \
                 counterfoil export flights.db flights flights.parquet"
            ))
        } else {
            say("Nothing of this is left (--keep DIR keeps it). Three commands to try:\n\n  \
                 counterfoil init my.db              asks for a passphrase\n  \
                 counterfoil my.db                   an SQL shell\n  \
                 counterfoil import my.db TABLE FILE --create")
        }
    }
}

const PROTECTED: &str = "
What was protected, and what not
--------------------------------
  Whoever has the file cannot read a row, a name or a key in it; cannot change, swap or splice anything
  unnoticed; and cannot put back an older copy unnoticed where the counter is.
  They can see how large it is and how it grows, and they can destroy it: keep backups.
  The counter here is a file beside your other state: who can write there too can put both back.
  Whoever has the key, or the memory of a running process, has everything.
";

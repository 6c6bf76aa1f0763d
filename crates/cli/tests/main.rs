//! The program as its users meet it: started anew for every command, judged by what it prints and how it ends.

mod main {
    pub mod stage;

    mod bad_files;
    mod brought_back;
    mod changed_key;
    mod copies;
    mod device;
    mod dispersed;
    mod everywhere;
    mod export;
    mod import;
    mod keys;
    mod kv;
    mod lines;
    mod marker;
    mod moved;
    mod output;
    mod postgres;
    mod processes;
    mod providers;
    mod published;
    mod published_engine;
    mod published_keys;
    mod published_network;
    mod published_sql;
    mod published_stores;
    mod put_back;
    mod relations;
    mod series;
    mod serve;
    mod served;
    mod shell;
    mod sql;
    mod stores;
    mod tpm;
    mod trust;
    mod usage;
}

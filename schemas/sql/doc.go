// Package sql is the text that Almanac gives to ClickHouse about a topic: definitions of its
// table, views and derived tables, statements that fill these, and what clearing fields is.
//
// Definitions are templates (*.sql), one a file, filled in from a schemas.Topic. Names are
// validated before they get here and quoted all the same (QuoteName, QuoteText). The package
// sends nothing: tables does, and says with which settings. What a statement must tell is
// decided elsewhere as data (schemas.Topic.Clearing, RuleUses); here it only becomes text.
//
// Statements of more than three lines are templates too, in a folder of what sends
// them (usage, series, tables). For each there is a type whose fields are its parameters, with a method SQL.
// Tables and columns are quoted by the caller, and values are parameters of the statement
// ({name:Type}). Lines that begin with -- are for the reader of the file, and are not sent.
//
// A template that does not fill in panics: the files are constants, and a test runs them all.
package sql

// Package logql answers LogQL, the language of Loki, over topics of kinds log and audit.
//
// # Model
//
// The line is the message. The labels that name streams are the topic, the service, the level and the promoted fields of type
// lowcardinality. What else an event has is structured metadata: its other columns and its attributes. A name that Loki cannot
// write has _ in place of what it cannot: actor.login is actor_login.
//
//	text ─▶ grammar ─▶ Query ─┬─ lines:   a page by a filter of --where ─▶ the stages that are left ─▶ entries
//	                          └─ numbers: counts by ClickHouse, where a filter says all; else from entries
//
// Parse reads a query and refuses what is not built by its name. A Pipeline decides over one Entry and has no I/O (stage.go,
// labelfilter.go, parser.go, format.go). selection makes one filter of the matchers and filters that --where can say. The others stay
// stages (where.go). An Engine reads by package query: lines and numbers are as fresh and as exact as its pages and counts.
//
// A Tail reads lines that were there and follows what comes, by Reader.Tail of each topic. What waits for its reader is in one bounded queue
// (tailqueue.go).
//
// # Where it differs from Loki
//
// A comparison with a number holds for no value that is not one. Loki keeps such a line, with an error. The parser json leaves a line
// alone that does not begin as an object: what came as JSON is structured metadata already. Series have the labels of
// streams and those that the query names. Other structured metadata is none of their labels. A label such as x_y may stand for an
// attribute of another name, x.y. It is looked for among those of the newest 50,000 events (query.SampleEvents).
//
// # Failures
//
// Every refusal of a query is an *Error, with its place. A query that must read lines one by one reads MaxRead of them. Beyond that it
// is refused with ErrTooMuch, and never answered in part. What the servers do not answer is their error, as package query has it.
package logql

// Package logql answers LogQL, the language of Loki, over topics of kinds log and audit.
//
// # Model
//
// A stream is a topic, a service, a level and the promoted fields of type lowcardinality: those are the labels that name streams. What else
// an event has is structured metadata: its other columns, and its attributes, under names that Loki can write (actor.login is
// actor_login). The line is the message.
//
//	text ─▶ grammar ─▶ Query ─┬─ lines:   a page by a filter of --where ─▶ the stages that are left ─▶ entries
//	                          └─ numbers: counts by ClickHouse, where a filter says all; else from entries
//
// Parse reads a query and refuses what is not built by its name. A Pipeline decides over one Entry and has no I/O (stage.go,
// labelfilter.go, parser.go, format.go). selection turns the matchers and filters that --where can say into one, and leaves the others
// as stages (where.go). An Engine reads by package query, so lines and numbers are as fresh and as exact as its pages and counts.
//
// # Where it differs from Loki
//
// A comparison with a number holds for no value that is not one; Loki keeps such a line, with an error. The parser json leaves a line
// alone that does not begin as an object, since what came as JSON is structured metadata already. Series have the labels of
// streams and those that the query names; other structured metadata is none of their labels. A label that stands for several
// attributes, such as x_y for x.y, is looked for among those of the newest 50,000 events (query.SampleEvents).
//
// # Failures
//
// Every refusal of a query is an *Error with its place. A query that must read its lines one by one ends at MaxRead of them with
// ErrTooMuch, and never with a part of the answer. What the servers do not answer is their error, as package query has it.
package logql

// Package elastic takes what programs send to Elasticsearch: the bulk API, and the
// requests by which clients find out whom they speak to.
//
// # Model
//
// A bulk request is lines: an action, and for index and create the document
// after it. Each document becomes one event of the topic that its _index names.
// Decode is pure: it turns a body into items, in order, and never waits. Each item is
// an event or says why it is refused. AppendResponse writes the answer to them.
//
// An index names a topic as it is, without its date (app-2026.11.20), or with
// "-" in place of "_" (TopicOf). No topic is ever created. update and delete are
// refused, since events do not change.
//
// _id stays an attribute. It does not make an item idempotent, so a repeated
// request stores its events again. The response names each event by _id: the
// client's own, else the id of the event.
//
// # Failures
//
// A body that is not a bulk request is an error (ErrBulk), and nothing of it is taken.
// A document that cannot become an event refuses its item alone, in the words of
// Elasticsearch: clients decide by status and type whether to retry.
package elastic

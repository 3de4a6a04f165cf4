// Package kinds says what tells one kind of topic from another, as data.
//
// # Model
//
// A Kind is a preset over the one frame format: fields that every topic of the kind
// begins with, rules that hold for each of its events, the columns that make two events
// the same one, the definition of its table, tables derived from it, and defaults. The
// ten base columns stay in the table and the frames of every kind, and the kind's fields
// follow them as ordinary promoted fields. So router and sinks carry every kind alike.
//
// A kind is one file here (its Spec) and one template in schemas/sql. The table of
// specs is static: nothing registers itself.
//
// # Who is authoritative
//
// The Spec of the running version decides. The topic's descriptor repeats the kind's
// fields, because frames are read by it; what else a Spec says is in no registry.
//
// # Failures
//
// Nothing here fails: package schemas applies the specs, and its errors say what a topic
// or an event does not keep to.
package kinds

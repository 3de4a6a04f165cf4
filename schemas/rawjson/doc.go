// Package rawjson reads JSON objects, and flat records of named texts, as events.
//
// # Model
//
// An object is checked and flattened in one pass: each value that is not an object becomes a
// leaf whose name is the keys above it, joined with dots (flatten.go). Leaves fill the fields
// of the event: by our own words (schemas.JSONWords), by keys that the caller names (Keys), or
// by the paths of a protocol (Paths). All others become attributes, up to the limits; the rest
// is kept as one JSON object in schemas.AttrRest (limit.go). So nothing of a record is lost
// but nulls. The same record is the same event each time.
//
// The texts of an event share one copy of the record, and the leaves of a record make room
// for those of the next (leafPool).
//
// # Failures
//
// An object that cannot be read is schemas.ErrNotJSON or schemas.ErrJSONEvent, with the
// place or the key. Nothing here does I/O, reads the clock or starts a goroutine. An event
// has about the size of its object, whatever the object is.
package rawjson

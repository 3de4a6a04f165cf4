// Package declare says what a declaration of a topic would do to what is stored, and declares it.
//
// # Model
//
// A Plan is what Foresee finds: what becomes of the topic, which shards retention drops or anonymises sooner than by the
// topic as it is, and how many events of the last day have a field that gets a privacy rule. Apply declares the topic, and
// waits until every running router has its privacy rules.
//
// # Failures
//
// Without an agreement Apply refuses a declaration that makes events go sooner (*LossError): nothing brings them back. What is
// counted is told as not known where ClickHouse does not answer; the plan is made all the same.
//
// # Safety
//
// A shard that begins between Foresee and Apply is not in the plan. It is of the month that runs, or as young, so that what
// becomes of it is what the new retention says.
package declare

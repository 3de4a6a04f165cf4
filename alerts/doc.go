// Package alerts declares rules of alerts and reads what became of them: which fire, and the history.
//
// # Model
//
// A rule counts the events of a topic that match a filter within a window, by a field or all together, and says
// which count makes an alert. A group of rules is declared and replaced whole. Its receivers say where notifications go.
//
// A rule over an expression (Expr) or a meter (Meter) asks ClickHouse at instants of its own, once all is stored that its topic
// accepted before. Each series, or value of by, that it finds is an alert. A rule that records (Record) writes the value of each series
// into the same topic instead, as a point whose identity is the series and the instant.
//
//	SHARDS ─▶ counts by time of acceptance ─▶ evaluated each second ─▶ commit ─▶ event in alerts
//	                                                                    └──▶ timer in alert_calls ─▶ receiver
//
// One process of those that run sinks evaluates the rules of a topic (package evaluate). Time is the log's: an instant is evaluated
// once all that was accepted before it is routed. So events that waited are evaluated as if they had not, and a router
// that is away delays alerts and makes none.
//
// # States of an alert
//
//	inactive ─▶ pending (the condition holds, for less than for) ─▶ firing ─▶ inactive
//
// # Who is authoritative
//
// Rules: the registry. What an alert is: its last event in alerts, of kind audit. A job of the registry names these events, by
// topic, with the instant up to which is evaluated; it is written by compare-and-set, and that is the commit. It has transitions
// whole until they are delivered, and then their keys alone, since the value of a group may name a person.
//
// # Failures
//
//	killed after    leaves                      then
//	evaluating         nothing                     the next owner evaluates the same instants again
//	the commit      transitions in the job      the next owner delivers them: an event of the same request and time, which
//	                                            counts once, and a timer of the same id, which is there or not
//	the delivery    the same                    the same
//
// The registry is lost, or restored from an older copy: the job is made of the events in alerts again, and what came
// since the last of them is evaluated. A transition that was committed and not delivered is made once more, and those of the newest event are told if they were not.
// Rules may be of that older copy too: an alert that the job did not have waits ten minutes for its rule.
//
// A lease that moved: two processes may evaluate, one commits. The other reads the job again.
//
// ClickHouse is away: rules go on, but for filters that it alone decides, and a process that takes over waits for it.
// NATS is away: nothing is evaluated; afterwards all instants since are.
//
// A rule that is removed, or means something else, while its alerts fire: they end, with that reason. Labels,
// annotations and receivers are those of the rule at the transition. The job of a topic without rules is deleted then.
//
// An erasure: events that it means are not counted from its beginning on. The events of alerts have the group's value, as
// user_id where the rule groups by user_id, and so have timers: erase the person there too. An alert whose event is gone is forgotten, but for one of a rule without by.
package alerts

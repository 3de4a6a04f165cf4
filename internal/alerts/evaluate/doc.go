// Package evaluate evaluates the rules of alerts: once for each topic, across all processes. Package alerts has the model
// and says what each failure does.
//
// It runs beside the sinks, since a sink has the rights that it needs (reads of all streams and tables, writes of events, timers and
// jobs), the members that share work, and no door of its own. Another part would be one more process to run, with a
// user of NATS, an account and a lease.
//
//	Round ─▶ a run for each topic with rules, or with alerts of rules that were removed; some at once
//	run:  load    the job, what its outbox has is delivered, events of its alerts, frames since the window of the last instant
//	      rebuild   the job by the events of alerts, where it is lost or there are some that it does not know
//	      feed    frames that were routed since: counts by group and time of acceptance
//	      evaluate   each instant up to which all is routed
//	      ask     expressions and meters at their last instant, beside the rounds; a later round decides by the answers
//	      commit  the job with the outbox ─▶ events, timers ─▶ the job without
//
// ClickHouse decides filters that a frame does not. It has the events of the alerts that a run begins with. Where it does
// not answer, the topics that need it fail within seconds. The others go on.
//
// Rules that record are asked with the others of their topic, in the order of their groups. What they write is stored before the
// job says that they were evaluated: a process that dies between has the next one write the same points again. Those of one series
// and instant count once.
//
// A run keeps nothing that it could not read again. Whatever fails ends it, and the next round loads another. But an
// event that can never be stored is reported and left out, so that it holds up no rule; and where the clock of NATS was
// set back, load goes back to it.
package evaluate

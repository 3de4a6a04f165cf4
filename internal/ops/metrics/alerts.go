package metrics

// Of the rules of alerts, by the registry. Every gateway says the same.
var (
	AlertsRules   = gauge("almanac_alerts_rules", "Rules over the events of a topic.", "topic")
	AlertsWrong   = gauge("almanac_alerts_wrong_rules", "Those of them that are not evaluated: `almanac doctor` says why.", "topic")
	AlertsPending = gauge("almanac_alerts_pending", "Alerts of a topic whose condition holds, for less than their rule's for.", "topic")
	AlertsFiring  = gauge("almanac_alerts_firing", "Alerts of a topic that fire.", "topic")
	AlertsLag     = gauge("almanac_alerts_evaluation_lag_seconds", "How long ago the instant was up to which the rules of a topic are evaluated.", "topic")
)

// Of what evaluates rules, in sinks: a topic's are one process's.
var (
	AlertsEvaluations = counter("almanac_alerts_evaluations_total", "Rounds in which the rules of a topic were evaluated.", "topic")
	AlertsTransitions = counter("almanac_alerts_transitions_total", "Alerts that became pending, firing or inactive.", "topic", "state")
	AlertsRecorded    = counter("almanac_alerts_recorded_total", "Samples that rules recorded, of the series that they had.", "topic")
	AlertsUnrecorded  = counter("almanac_alerts_unrecorded_total", "Instants at which a rule that records wrote nothing or not all: `almanac alerts ls` says why.", "topic")
	AlertsFailures    = counter("almanac_alerts_failures_total", "Rounds that failed and were tried again, and what was left out; without a topic those of all.", "topic")
)

// Of what dispatchers do with notifications.
var (
	AlertsCalls = counter("almanac_alerts_notifications_total", "Attempts to tell a receiver of an alert, by outcome: done, failed (it refused, or all attempts were made), retry or rescheduled.", "receiver", "outcome")
)

// Package forms writes what a receiver is sent when an alert begins or ends, in the form that it takes. It is pure.
//
// # Model
//
//	json          Almanac's own, as the payload of a timer's call
//	slack         a message of a Slack incoming webhook
//	pagerduty     an event of PagerDuty's Events API v2: trigger or resolve, under one dedup_key
//	alertmanager  an alert of Alertmanager's API v2
//
// All but json are the whole body of the call. Which of two calls counts is the receiver's to know: PagerDuty goes by
// the key of the alert, which is of its rule, its group's value and when it began, and Alertmanager by its labels.
// A chat shows each.
package forms

// Package alerttest evaluates alerts as Prometheus does: with its parser and its engine, over samples of scrapes.
//
// The rules are those of deploy/prometheus. The package's own tests need no running process. They check the rules, their
// unit tests, the runbook of each, and the dashboard. Tests of the command plant faults and evaluate the same rules.
package alerttest

package api

import "github.com/almanac-events/almanac/internal/operations"

// addMetrics adds what Prometheus scrapes.
func (a *API) addMetrics(on routes) {
	if a.cfg.Metrics != nil {
		on.serve(&operations.Metrics, a.cfg.Metrics.ServeHTTP)
	}
}

// addMCP adds the door for assistants.
func (a *API) addMCP(on routes) {
	if a.cfg.MCP != nil {
		on.serve(&operations.MCP, a.cfg.MCP.ServeHTTP)
	}
}

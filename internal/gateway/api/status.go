package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/almanac-events/almanac/query"
)

// Status is what an operator looks at first, with what this process knows by itself.
type Status struct {
	query.Status
	// Version is that of this process.
	Version string `json:"version"`
	// Inputs are what came by this process since it began.
	Inputs []InputUse `json:"inputs"`
	// Listens are where this process takes events beside the address of this answer.
	Listens Listens `json:"listens"`
}

// Listens are ports of inputs that have listeners of their own; 0: there is none.
type Listens struct {
	OTLPHTTP  int `json:"otlp_http,omitempty"`
	SyslogUDP int `json:"syslog_udp,omitempty"`
	// SyslogTopic takes what comes by syslog.
	SyslogTopic string `json:"syslog_topic,omitempty"`
}

// InputUse is how much of a topic comes by an input of this process.
type InputUse struct {
	Input string `json:"input"`
	Topic string `json:"topic"`
	// LastEvent is when events were last taken, LastSeconds how long ago that is.
	LastEvent   time.Time `json:"last_event"`
	LastSeconds float64   `json:"last_event_seconds_ago"`
	// Events are those that were taken since the process began, PerSecond those of the last minute, a second.
	Events    uint64  `json:"events"`
	PerSecond float64 `json:"events_per_second"`
}

// natsDisk is what the disk of an own NATS is called.
const natsDisk = "streams"

func (a *API) status(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := paramsOf(r).end(); err != nil {
		return nil, err
	}
	s, err := a.cfg.Reader.Status(r.Context())
	if err != nil {
		return nil, err
	}
	out := Status{Status: *s, Version: a.cfg.Version, Inputs: []InputUse{}, Listens: a.cfg.Listens}
	if a.cfg.Inputs != nil {
		out.Inputs = filled(a.cfg.Inputs())
	}
	out.Disks = filled(slices.Clone(out.Disks))
	if a.cfg.NATSDisk != nil {
		if one, known := a.cfg.NATSDisk(); known {
			one.Server, one.Disk = query.ServerNATS, natsDisk
			out.Disks = append(out.Disks, one)
		}
	}
	for i := range out.Inputs {
		one := &out.Inputs[i]
		one.LastEvent, one.LastSeconds = one.LastEvent.Truncate(time.Millisecond), time.Since(one.LastEvent).Seconds()
	}
	return out, nil
}

package decide

// Topic is how far the rules of a topic are evaluated: what the job of the registry holds.
type Topic struct {
	// Decided is the last instant that was evaluated, unix ns.
	Decided int64 `json:"evaluated"`
	// Alerts are those that are pending or firing.
	Alerts []Named `json:"alerts,omitempty"`
	// Outbox are transitions that may not be delivered yet. They name groups.
	Outbox []Notice `json:"outbox,omitempty"`
	// Asked is how far rules are evaluated that have instants of their own, by a name of each.
	Asked map[string]Asked `json:"asked,omitempty"`
	// Rebuilt is when all of this was made of the events of alerts, unix ns, while their rules may still be coming back; 0: it was not.
	Rebuilt int64 `json:"rebuilt,omitempty"`
}

// Asked is how far a rule is evaluated whose values are asked for.
type Asked struct {
	// At is the last of its instants, unix ns, and Error why it has no value there; empty: it was evaluated.
	At    int64  `json:"at"`
	Error string `json:"error,omitempty"`
	// Took is how long it was asked for, ns, and Recorded how many series it wrote, where it records.
	Took     int64 `json:"took,omitempty"`
	Recorded int   `json:"recorded,omitempty"`
}

// Named is an alert without the value of its group, which the event of its last transition has.
type Named struct {
	Alert
	// Group and Rule are the names of the rule, Sum what it meant.
	Group string `json:"group"`
	Rule  string `json:"rule"`
	Sum   string `json:"sum"`
	// Key is of the last transition: the request of its event, which has the time At.
	Key string `json:"key"`
}

// Notice is a transition as it is delivered: all that its event and its notifications say.
type Notice struct {
	Key   string `json:"key"`
	Topic string `json:"topic"`
	Group string `json:"group"`
	Rule  string `json:"rule"`
	// Sum is what the rule meant.
	Sum string `json:"sum,omitempty"`
	// Was is the key of the alert's transition before; empty: it was inactive.
	Was string `json:"was,omitempty"`
	// By is the field that the rule groups by, or BySeries, and Value what it is of this alert.
	By    string `json:"by,omitempty"`
	Value string `json:"value,omitempty"`
	From  State  `json:"from"`
	To    State  `json:"to"`
	At    int64  `json:"at"`
	Since int64  `json:"since"`
	Count Number `json:"count"`
	// Reason is why an alert ended, where it is not that the condition no longer holds.
	Reason string `json:"reason,omitempty"`
	// User is whom Labels name; empty: no one.
	User        string            `json:"user,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Calls       []Call            `json:"calls,omitempty"`
	// Stored: its event is there, and receivers are told alone for whom no timer is.
	Stored bool `json:"stored,omitempty"`
}

// BySeries is By where a rule has an alert for each series of its expression, whose labels Value has as text.
const BySeries = "series"

// Call is a receiver to be told.
type Call struct {
	Receiver string `json:"receiver"`
	URL      string `json:"url"`
	// Form is of package forms; empty: json. RoutingKey is PagerDuty's.
	Form       string `json:"form,omitempty"`
	RoutingKey string `json:"routing_key,omitempty"`
}

// Tells reports whether receivers are told: an alert that fires, and one that ends after it fired.
func (n *Notice) Tells() bool { return n.To == Firing || n.From == Firing }

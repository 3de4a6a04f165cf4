package alerts

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/alerts/forms"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// Receiver is who is told of alerts.
type Receiver struct {
	// Name is the group of timers in alert_calls: [a-z0-9_-]{1,63}.
	Name string `json:"name" yaml:"name"`
	URL  string `json:"url" yaml:"url"`
	// Form is what the receiver takes: json, slack, pagerduty or alertmanager; empty: json.
	Form string `json:"form,omitempty" yaml:"form"`
	// RoutingKey is the integration key of a PagerDuty service.
	RoutingKey string `json:"routing_key,omitempty" yaml:"routing_key"`
	// Secret names a secret of the operator's timers_secrets for the topic alert_calls, which signs; empty: nothing signs.
	Secret string `json:"secret,omitempty" yaml:"secret"`
}

// hidden stands for what a receiver is called with, where a list does not show it.
const hidden = "xxxxx"

// hide removes what is secret: an address keeps its scheme and its host, and of a key is told that there is one.
func (r *Receiver) hide() {
	if r.RoutingKey != "" {
		r.RoutingKey = hidden
	}
	if u, err := url.Parse(r.URL); err == nil && u.Host != "" {
		r.URL = u.Scheme + "://" + u.Host + "/" + hidden
	} else if r.URL != "" {
		r.URL = hidden
	}
}

// validate completes a receiver by its defaults, and refuses what cannot be.
func (r *Receiver) validate() error {
	if err := schemas.ValidateTimerGroup(r.Name); err != nil {
		return err
	}
	if r.Form == forms.PagerDuty && r.URL == "" {
		r.URL = forms.PagerDutyURL
	}
	if err := timer.CheckURL(r.URL, nil); err != nil {
		return err
	}
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
		return err
	case u.Path == "/"+hidden || r.RoutingKey == hidden:
		return fmt.Errorf("its address or key is %s, as a list shows it to who may not see it: give the whole", hidden)
	case r.Form != "" && !slices.Contains(forms.All, r.Form):
		return fmt.Errorf("form is %q; expected %s", r.Form, strings.Join(forms.All, ", "))
	case r.Form == forms.PagerDuty && !routingKey.MatchString(r.RoutingKey):
		return fmt.Errorf("form pagerduty needs routing_key, the integration key of a service: letters and digits, usually 32")
	case r.Form != forms.PagerDuty && r.RoutingKey != "":
		return fmt.Errorf("routing_key is for the form pagerduty")
	case r.Form == forms.Alertmanager && !strings.HasSuffix(u.Path, forms.AlertmanagerPath):
		return fmt.Errorf("the URL of form alertmanager ends in %s, as http://alertmanager:9093%s", forms.AlertmanagerPath, forms.AlertmanagerPath)
	}
	return nil
}

var routingKey = regexp.MustCompile(`^[A-Za-z0-9]{8,64}$`)

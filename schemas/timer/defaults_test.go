package timer

import (
	"testing"
	"time"
)

// What a policy leaves out comes from what it says: no first wait is above its longest.
func TestPolicyDefaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ have, want Policy }{
		"nothing":              {Policy{}, Policy{Initial: defaultInterval, Multiplier: defaultMultiplier, MaxInterval: defaultMaxInterval}},
		"a short longest wait": {Policy{MaxInterval: time.Second}, Policy{Initial: time.Second, Multiplier: defaultMultiplier, MaxInterval: time.Second}},
		"a long longest wait":  {Policy{MaxInterval: time.Hour}, Policy{Initial: defaultInterval, Multiplier: defaultMultiplier, MaxInterval: time.Hour}},
		"a long first wait":    {Policy{Initial: time.Hour}, Policy{Initial: time.Hour, Multiplier: defaultMultiplier, MaxInterval: time.Hour}},
		"all":                  {Policy{Initial: 1, Multiplier: 3, MaxInterval: 2}, Policy{Initial: 1, Multiplier: 3, MaxInterval: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.have.withDefaults()
			if got.Initial != c.want.Initial || got.Multiplier != c.want.Multiplier || got.MaxInterval != c.want.MaxInterval {
				t.Errorf("%+v, expected %+v", got, c.want)
			}
		})
	}
}

func TestParseTimeout(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"5s": 5 * time.Second, MaxTimeout.String(): MaxTimeout, "1ns": 1, "0s": 0, "-1s": 0, (MaxTimeout + 1).String(): 0, "5": 0, "": 0} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if got, err := ParseTimeout(text); got != want || (err == nil) != (want > 0) {
				t.Errorf("%s, %v, expected %s", got, err, want)
			}
		})
	}
}

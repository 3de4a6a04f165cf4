package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// heard is a line of a user's configuration beside what it may publish, and how it is named where it is missing.
type heard struct{ line, named string }

// heardBy are the subjects that a part may subscribe to, and that it may answer.
func heardBy(user string) (all []heard) {
	u := access.NATSUserOf(user)
	for _, h := range u.Hears {
		all = append(all, heard{strconv.Quote(h), "subscribe allow " + strconv.Quote(h)})
	}
	if u.Answers {
		all = append(all, heard{"allow_responses: true", "allow_responses: true"})
	}
	if os.Getenv(removedRightsEnv) == "" {
		return all[len(all)-1:]
	}
	return all
}

// A part that may not subscribe to what it needs, or not answer, says which line it lacks: by its log, by doctor with its settings, and by that of the
// operator.
func TestRemovedRightsToHear(t *testing.T) {
	t.Parallel()
	p := newApart(t)
	parts := map[string][]string{access.UserRouter: {"router"}, access.UserGateway: {"gateway", "--http", "off", "--otlp-http", "127.0.0.1:0", "--otlp-grpc", "off"}}
	if os.Getenv(removedRightsEnv) != "" {
		parts[access.UserSink], parts[access.UserTimers] = []string{"sink"}, []string{"timers", "run"}
	}
	for user, command := range parts {
		for _, h := range heardBy(user) {
			p.nats.deaf(user, h.line)
			began := time.Now()
			part := p.as(user).background(command...)
			embeddedtest.Eventually(t, maxWait, func() error {
				if text := strings.ReplaceAll(part.stderr(), `\"`, `"`); !strings.Contains(text, h.named) {
					return fmt.Errorf("%s without %s does not say so: %s", user, h.line, text)
				}
				return nil
			})
			inTime(t, began, "%s without %s says that it lacks it", user, h.line)
			p.names(user, h.line, h.named)
			embeddedtest.Eventually(t, maxWait, func() error {
				if text := strings.Join(strings.Fields(p.as(access.UserOperator).run("", "doctor").out), " "); !strings.Contains(text, "its user "+user+" lacks "+h.named) {
					return fmt.Errorf("the operator's doctor does not name what %s lacks: %s", user, text)
				}
				return nil
			})
			p.nats.whole()
			part.says("the user has all rights that it needs")
			part.stop(syscall.SIGKILL)
		}
	}
}

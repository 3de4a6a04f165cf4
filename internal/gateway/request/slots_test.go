package request

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/internal/access"
)

// What is refused says how many are under way and is counted by its reason, and a slot comes back once.
func TestSlots(t *testing.T) {
	t.Parallel()
	counted := map[string]int{}
	s := NewSlots("reads", 4, func(what, why string) {
		if what != "reads" {
			t.Errorf("counted are %s", what)
		}
		counted[why]++
	})
	var frees []func()
	take := func(holder, want string) {
		t.Helper()
		free, err := s.Take(holder)
		if err == nil {
			frees = append(frees, free)
		}
		if got := text(err); got != want {
			t.Errorf("%s: %q, want %q", holder, got, want)
		}
	}
	for range 3 {
		take("a", "")
	}
	take("a", "3 reads are under way")
	take("b", "")
	take("b", "4 reads are under way, 1 of them by this client")
	take("c", "4 reads are under way, 0 of them by this client")
	if counted[LimitShare] != 1 || counted[LimitFull] != 2 {
		t.Errorf("counted %v", counted)
	}
	for range 2 {
		frees[0]() // a second time gives nothing back
	}
	take("c", "")
	take("d", "4 reads are under way, 0 of them by this client")
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Who waits gets what another gives back, or hears after its time that there is none.
func TestSlotsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		s := NewSlots("bodies", 2, func(string, string) { refused++ })
		first, err := s.Wait(t.Context(), "a", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := s.Wait(t.Context(), "a", time.Second); !errors.As(err, new(*BusyError)) || time.Since(began) != time.Second || refused != 1 {
			t.Errorf("%v after %s, %d refused", err, time.Since(began), refused)
		}
		time.AfterFunc(time.Minute, first)
		began = time.Now()
		again, err := s.Wait(t.Context(), "a", time.Hour)
		if err != nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Wait(gone, "a", time.Hour); !errors.Is(err, context.DeadlineExceeded) || refused != 1 {
			t.Errorf("a client that goes: %v, %d refused", err, refused)
		}
		again()
	})
}

// Reads wait for a slot, a few of them, of which one client leaves others some: who would be one more hears at once that there is none.
func TestSlotsQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		s := NewSlots("reads", WithOthers(1), func(string, string) { refused++ })
		first, err := s.Queue(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		began, gone := time.Now(), make(chan error)
		const queue = maxQueued * 3 / 4
		for range queue {
			go func() {
				free, err := s.Queue(t.Context(), "a")
				if err == nil {
					defer free()
				}
				gone <- err
			}()
		}
		synctest.Wait() // all of them wait
		if _, err := s.Queue(t.Context(), "a"); !errors.As(err, new(*BusyError)) || time.Since(began) != 0 || refused != 1 {
			t.Errorf("one more that waits: %v after %s, %d refused", err, time.Since(began), refused)
		}
		other, err := s.Queue(t.Context(), "b")
		if err != nil {
			t.Errorf("another client: %v", err)
		}
		other()
		<-time.After(QueueWait / 2)
		first() // each gives its slot to the next
		for range queue {
			if err := <-gone; err != nil {
				t.Errorf("one that waits: %v after %s", err, time.Since(began))
			}
		}
		if time.Since(began) != QueueWait/2 {
			t.Errorf("they had their slots after %s", time.Since(began))
		}
		again, err := s.Queue(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		defer again()
		began = time.Now()
		if _, err := s.Queue(t.Context(), "a"); !errors.As(err, new(*BusyError)) || time.Since(began) != QueueWait || refused != 2 {
			t.Errorf("in vain: %v after %s, %d refused", err, time.Since(began), refused)
		}
		if s.queued.taken != 0 {
			t.Errorf("%d wait in the end", s.queued.taken)
		}
	})
}

// A token is a holder wherever it asks from; without one it is an address, or a /64, and all programs of this machine are one.
func TestHolderOf(t *testing.T) {
	t.Parallel()
	of := func(name, from string) string {
		r := &http.Request{RemoteAddr: from}
		return HolderOf(r.WithContext(access.With(t.Context(), &access.Principal{Name: name})))
	}
	for name, c := range map[string]struct {
		a, b string
		same bool
	}{
		"a token from two places":        {of("t", "192.0.2.1:1"), of("t", "192.0.2.9:1"), true},
		"two tokens from one":            {of("t", "192.0.2.1:1"), of("u", "192.0.2.1:1"), false},
		"two connections of an address":  {of("", "192.0.2.1:1"), of("", "192.0.2.1:2"), true},
		"two addresses":                  {of("", "192.0.2.1:1"), of("", "192.0.2.2:1"), false},
		"a /64":                          {of("", "[2001:db8::1]:1"), of("", "[2001:db8::2]:1"), true},
		"programs of this machine":       {of("", "127.0.0.1:1"), of("", "[::1]:2"), true},
		"a token with an address's name": {of("192.0.2.1", "127.0.0.1:1"), of("", "192.0.2.1:1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if (c.a == c.b) != c.same {
				t.Errorf("%q and %q", c.a, c.b)
			}
		})
	}
}

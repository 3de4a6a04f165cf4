package audit_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/audit"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// iam is a trail without servers, and a function that prints what is stored of it.
func iam() (trail *audit.Trail, show func()) {
	servers := producer.NewMemory(schemas.NewTopicOf(schemas.KindAudit, "iam"))
	p, err := servers.Producer(producer.Config{Topic: "iam"})
	if err != nil {
		panic(err)
	}
	return audit.New(p), func() {
		_ = p.Close(context.Background())
		for _, e := range servers.Events() {
			fmt.Print(e.Type, " ", e.UserID)
			for _, a := range e.Attrs {
				if a.Text() != "" && (a.Key == "state" || a.Key == "resource" || a.Key == "before" || a.Key == "after") {
					fmt.Printf(" %s=%s", a.Key, a.Text())
				}
			}
			fmt.Println()
		}
	}
}

// A change is announced before it is made, and concluded afterwards.
func Example() {
	trail, show := iam()
	ctx := context.Background()
	change := audit.Change{
		Request: "q-1", Scope: "projects/p", Service: "iam", Method: "UpdateRole", Type: "role", Resource: "roles/x", Actor: "u-7",
		Before: map[string]int{"level": 1}, After: map[string]int{"level": 2},
	}
	if err := trail.Before(ctx, change); err != nil {
		fmt.Println(err) // and the change must not be made
		return
	}
	// … the change is made …
	if err := trail.After(ctx, change, audit.Committed); err != nil {
		fmt.Println(err)
	}
	show()
	// Output:
	// change u-7 resource=roles/x state=pre_committed before={"level":1} after={"level":2}
	// change u-7 resource=roles/x state=committed after={"level":2}
}

// Activity is what a request did beside its changes.
func ExampleTrail_Record() {
	trail, show := iam()
	if err := trail.Record(context.Background(), audit.Activity{Type: "request", Request: "q-1", Scope: "projects/p", Method: "GetRole", Resource: "roles/x", Actor: "u-7"}); err != nil {
		fmt.Println(err)
	}
	show()
	// Output:
	// request u-7 resource=roles/x
}

// A body that is not JSON is refused before anything is stored.
func ExampleTrail_Before() {
	trail, show := iam()
	err := trail.Before(context.Background(), audit.Change{Request: "q-1", Scope: "projects/p", Type: "role", Resource: "roles/x", After: func() {}})
	fmt.Println("bad body:", errors.Is(err, audit.ErrBody))
	show()
	// Output:
	// bad body: true
}

package access

import (
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// NATSRights are what a NATS server says that the user of a connection may do. Nil: everything, as without users.
type NATSRights struct {
	Publish   *NATSSubjects  `json:"publish"`
	Subscribe *NATSSubjects  `json:"subscribe"`
	Responses *NATSResponses `json:"responses"`
}

// NATSSubjects are the subjects that a user may use, and those that it may not. Without Allow it may use all others.
type NATSSubjects struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
}

// NATSResponses says that a user may answer requests.
type NATSResponses struct {
	Max int `json:"max"`
}

// Lacks lists what the user needs and does not have, each as a server's configuration has to have it. What it has beyond that is not
// looked at: an account may do the work of several users.
func (u *NATSUser) Lacks(have *NATSRights) (lines []string) {
	if have == nil {
		return nil
	}
	lines = append(lines, lacksOf("publish", u.Publish, u.Deny, have.Publish)...)
	lines = append(lines, lacksOf("subscribe", u.Hears, nil, have.Subscribe)...)
	if u.Answers && have.Responses == nil && len(lacksOf("", []string{">"}, nil, have.Publish)) > 0 {
		lines = append(lines, "allow_responses: true")
	}
	return lines
}

// lacksOf compares one kind of rights. One filter must cover all of what is needed: a token that is any cannot be covered by
// several that are each something.
func lacksOf(kind string, need, without []string, have *NATSSubjects) (lines []string) {
	if have == nil {
		return nil
	}
	for _, n := range need {
		if len(have.Allow) > 0 && !slices.ContainsFunc(have.Allow, func(f string) bool { return schemas.CoversSubjects(plain(f), n) }) {
			lines = append(lines, kind+" allow "+quoted(n))
			continue
		}
		for _, d := range have.Deny {
			d = plain(d)
			own := slices.ContainsFunc(without, func(w string) bool { return schemas.CoversSubjects(w, d) })
			if line := kind + " without deny " + quoted(d); !own && schemas.SubjectsMeet(d, n) && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// plain is a filter without the queue that may follow it.
func plain(filter string) string {
	filter, _, _ = strings.Cut(filter, " ")
	return filter
}

func quoted(subject string) string { return `"` + subject + `"` }

package access

import (
	"slices"

	"github.com/almanac-events/almanac/schemas"
)

// NATSUser is an account of NATS. It may publish what Publish matches and Deny does not, and hears the answers to its own
// requests. Every part of a cluster has one; several processes of a part share it.
type NATSUser struct {
	Name string
	// Short is for help: who connects as it.
	Short string

	Publish, Deny []string
	// Hears are the subjects it may subscribe to, apart from the inboxes of its own.
	Hears []string
	// Answers says that it may answer a request once.
	Answers bool
	// Apart says that it has an account of its own, into which the account of the streams lets what Publish and Hears name. NATS asks
	// for no right to the subject that an answer goes to: beside the streams, JetStream's answer to a request would be written, and
	// obeyed, wherever its sender says.
	Apart bool
	// AnyInbox is for clients that do not know of inboxes of their own: all but those of the other users.
	AnyInbox bool
}

// The users.
const (
	UserLocal    = "local"
	UserProducer = "producer"
	UserReader   = "reader"
	UserRouter   = "router"
	UserSink     = "sink"
	UserTimers   = "timers"
	UserGateway  = "gateway"
	UserOperator = "operator"
	UserSetup    = "setup"
)

// Streams are all that Almanac has, the registry's two buckets among them.
var Streams = []string{schemas.StreamEvents, schemas.StreamShards, schemas.StreamDocs, schemas.StreamTimers, schemas.KVStream, schemas.CopiesStream}

// logs are the streams without the registry. What leaves them is decided message by message; no part may purge the registry.
var logs = Streams[:4]

// NATSUsers are all users, from the least to the greatest.
func NATSUsers() []NATSUser {
	return []NATSUser{
		{Name: UserLocal, Short: "a client without credentials on loopback", Publish: sends(), Hears: []string{schemas.KVSubject(schemas.TopicKeys)}, AnyInbox: true, Apart: true},
		{Name: UserProducer, Short: "applications that link the producer", Publish: sends(), Hears: []string{schemas.KVSubject(schemas.TopicKeys)}, Apart: true},
		{Name: UserReader, Short: "queries, counts, tails, lists; verify and doctor are the operator's, for they write", Publish: join(reads(), []string{schemas.SubjectsWaiting})},
		{
			Name: UserRouter, Short: "routers", Answers: true,
			Publish: join(reads(), takes(logs...), member(schemas.RoleRouter), probes(),
				[]string{schemas.SubjectsShards, schemas.SubjectsRouted, schemas.SubjectsDead, schemas.SubjectsGiven}, entries()),
			Deny:  join(people(), foreign(schemas.RoleRouter)),
			Hears: []string{schemas.MemberSubject(schemas.RoleRouter, schemas.AnyTopic)},
		},
		{
			Name: UserSink, Short: "sinks, with retention, the cleaner, seals, alerts and the keeper of the ledger beside them", Answers: true,
			Publish: join(reads(), takes(logs...), member(schemas.RoleSink), probes(),
				[]string{schemas.SubjectsLanes, schemas.SubjectsShards, schemas.SubjectsRouted, schemas.SubjectsGiven, schemas.SubjectsDocs, schemas.SubjectsDocLocks, schemas.SubjectsTimers, schemas.SubjectsWaiting}, entries()),
			Deny:  foreign(schemas.RoleSink),
			Hears: []string{schemas.MemberSubject(schemas.RoleSink, schemas.AnyTopic), schemas.SubjectsWaiting, schemas.KVSubject(schemas.TopicKeys)},
		},
		{
			Name: UserTimers, Short: "dispatchers", Answers: true,
			Publish: join(reads(), member(schemas.RoleTimers), probes(), []string{schemas.SubjectsLanes, schemas.SubjectsTimers}),
			Hears:   []string{schemas.MemberSubject(schemas.RoleTimers, schemas.AnyTopic)},
		},
		{
			Name: UserGateway, Short: "gateways: what their tokens may, for they ask for each request",
			Publish: join(operates(), []string{schemas.SubjectsWaiting}), Hears: []string{schemas.KVSubject(schemas.TopicKeys)},
			Deny: foreign(""),
		},
		{
			Name: UserOperator, Short: "people, and their commands: everything but to delete a stream",
			Publish: []string{">"}, Hears: []string{">"},
			Deny: api("STREAM.DELETE", Streams...),
		},
		{
			Name: UserSetup, Short: "almanac setup: makes the streams and declares topics",
			Publish: join(reads(), creates(), entries()), Deny: foreign(""),
		},
	}
}

// sends is what it takes to send: lanes, the topic's descriptor, and to ask what the user may do.
func sends() []string {
	p := []string{schemas.SubjectsLanes, schemas.SubjectOwnRights}
	p = append(p, api("STREAM.INFO", schemas.KVStream)...)
	for _, key := range []string{schemas.TopicKeys, schemas.RemovalKeys} {
		p = append(p, apiPrefix+"DIRECT.GET."+schemas.KVStream+"."+schemas.KVSubject(key))
	}
	return p
}

// reads is what it takes to read streams, to ask what the user may do, and whether a restore is under way where there is not a registry yet: NATS cannot narrow it to a topic, for a batched read names its filter in its body.
func reads() []string {
	p := join(api("STREAM.INFO", Streams...), api("STREAM.INFO", schemas.StreamRestoring), api("DIRECT.GET", Streams...), api("STREAM.MSG.GET", Streams...), []string{schemas.SubjectOwnRights})
	for _, s := range Streams {
		p = append(p, apiPrefix+"DIRECT.GET."+s+".>",
			apiPrefix+"CONSUMER.CREATE."+s+".*", apiPrefix+"CONSUMER.CREATE."+s+".*.>",
			apiPrefix+"CONSUMER.INFO."+s+".*", apiPrefix+"CONSUMER.DELETE."+s+".*", apiPrefix+"CONSUMER.MSG.NEXT."+s+".*",
			"$JS.FC."+s+".>") // a watcher of keys answers that it keeps up
	}
	return p
}

// takes is what it takes to let messages go.
func takes(streams ...string) []string {
	return join(api("STREAM.MSG.DELETE", streams...), api("STREAM.PURGE", streams...))
}

// creates is what it takes to make streams, and to ask how much fits.
func creates() []string {
	return join([]string{apiPrefix + "INFO", apiPrefix + "STREAM.NAMES"},
		api("STREAM.CREATE", Streams...), api("STREAM.UPDATE", Streams...),
		api("STREAM.CREATE", schemas.StreamTrial), api("STREAM.UPDATE", schemas.StreamTrial), api("STREAM.DELETE", schemas.StreamTrial), api("STREAM.INFO", schemas.StreamTrial))
}

// operates is everything that is done with data; it neither purges the registry nor makes streams.
func operates() []string {
	return join(reads(), takes(logs...), probes(), []string{apiPrefix + "INFO", schemas.MemberSubject("*", "*")},
		[]string{
			schemas.SubjectsLanes, schemas.SubjectsShards, schemas.SubjectsRouted, schemas.SubjectsDead, schemas.SubjectsGiven,
			schemas.SubjectsDocs, schemas.SubjectsDocLocks, schemas.SubjectsTimers,
		}, entries())
}

// member is what a part of a role says of itself, and asks its like.
func member(role string) []string {
	return []string{schemas.MemberSubject(role, "*"), schemas.KVSubject(schemas.LeaseKey(role, "*"))}
}

// probes is the write by which a part finds out whether NATS stores at all.
func probes() []string { return []string{schemas.KVSubject(schemas.LeaseKey(schemas.RoleProbe, "*"))} }

// entries are those of the registry, and their copies.
func entries() []string { return []string{schemas.KVSubject(">"), schemas.CopySubject(">")} }

// people are the entries that routers have no part in: jobs, and what was done by hand. A topic's they restore where the
// bucket lost it, and in a removal's they count what comes late.
func people() []string {
	var p []string
	for _, key := range []string{schemas.AllJobs, schemas.AllGroups} {
		p = append(p, schemas.KVSubject(key), schemas.CopySubject(key))
	}
	return p
}

// foreign are the leases of other roles than one.
func foreign(role string) []string {
	var p []string
	for _, r := range []string{schemas.RoleRouter, schemas.RoleSink, schemas.RoleTimers} {
		if r != role {
			p = append(p, schemas.KVSubject(schemas.LeaseKey(r, "*")))
		}
	}
	return p
}

// apiPrefix begins what JetStream is asked by.
const apiPrefix = "$JS.API."

func api(question string, streams ...string) []string {
	p := make([]string, len(streams))
	for i, s := range streams {
		p[i] = apiPrefix + question + "." + s
	}
	return p
}

func join(lists ...[]string) []string { return slices.Concat(lists...) }

// Subscribes are the subjects that a user may subscribe to, and those among them that it may not.
func (u *NATSUser) Subscribes() (allow, deny []string) {
	if !u.AnyInbox {
		return append([]string{schemas.InboxPrefix(u.Name) + ".>"}, u.Hears...), nil
	}
	for _, other := range NATSUsers() {
		if other.Name != u.Name {
			deny = append(deny, schemas.InboxPrefix(other.Name)+".>")
		}
	}
	return append([]string{schemas.InboxPrefix("") + ".>"}, u.Hears...), deny
}

// MayPublish reports whether the user may publish on a subject.
func (u *NATSUser) MayPublish(subject string) bool {
	matches := func(filter string) bool { return schemas.MatchesSubject(filter, subject) }
	return slices.ContainsFunc(u.Publish, matches) && !slices.ContainsFunc(u.Deny, matches)
}

// NATSUserOf is the user of a name; nil: there is none.
func NATSUserOf(name string) *NATSUser {
	users := NATSUsers()
	if i := slices.IndexFunc(users, func(u NATSUser) bool { return u.Name == name }); i >= 0 {
		return &users[i]
	}
	return nil
}

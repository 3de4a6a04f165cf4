package operations

// Way says by which doors something can be asked for: a verb of the command line, routes of the API, or both.
type Way struct {
	// Verb is the command without "almanac"; empty: there is no verb.
	Verb string
	// Routes are what the verb asks for, over HTTP.
	Routes []*Operation
	// Why says why one of the two is not there.
	Why string
}

// Why something has one door.
const (
	whyRuns       = "it runs until it is stopped, on the machine that it is for"
	whyServers    = "it changes streams or tables: the command line has the rights for it, a gateway does not"
	whyLocal      = "it reads or writes files and settings of the machine that it is called on"
	whyFile       = "tokens are in a file of the machine: who could make one over HTTP could make any"
	whyManyCalls  = "it is many requests to routes that are there"
	whyUndone     = "what it does cannot be undone: it stays with who has the servers"
	whyPage       = "it is a part of what the verb prints"
	whyForClients = "it is for clients of HTTP"
	whyReadsAll   = "it reads the record of every document of the topic: for who runs the servers, and not for each client"
)

// Ways list every verb and every operation once.
var Ways = []Way{
	{Verb: "query", Routes: []*Operation{&Events, &Count, &Histogram}},
	{Verb: "facets", Routes: []*Operation{&Facets}},
	{Verb: "fields", Routes: []*Operation{&Fields}},
	{Verb: "values", Routes: []*Operation{&Values}},
	{Verb: "tail", Routes: []*Operation{&Tail}},
	{Verb: "send", Routes: []*Operation{&SendEvents}},
	{Verb: "sql", Routes: []*Operation{&SQL}},
	{Verb: "series", Routes: []*Operation{&Series}},
	{Verb: "align", Routes: []*Operation{&Align}},
	{Verb: "usage", Routes: []*Operation{&Usage, &UsageDiffs}},
	{Verb: "trail", Routes: []*Operation{&Trail}},
	{Verb: "replay", Routes: []*Operation{&Replay}},
	{Verb: "erase", Routes: []*Operation{&Erase}},
	{Verb: "erase ls", Routes: []*Operation{&Erasures}},
	{Verb: "erase show", Routes: []*Operation{&ShowErasure}},
	{Verb: "erase resume", Routes: []*Operation{&ResumeErasure}},
	{Verb: "token add", Why: whyFile},
	{Verb: "token ls", Why: whyFile},
	{Verb: "token rm", Why: whyFile},
	{Verb: "token rotate", Why: whyFile},
	{Verb: "topics ls", Routes: []*Operation{&Topics}},
	{Verb: "topics show", Routes: []*Operation{&Topic}},
	{Verb: "topics apply", Routes: []*Operation{&DeclareTopic}},
	{Verb: "shards", Routes: []*Operation{&Shards}},
	{Verb: "lag", Routes: []*Operation{&Lag, &Status}},
	{Verb: "verify", Routes: []*Operation{&Proof, &Verify}},
	{Verb: "dead ls", Routes: []*Operation{&DeadLetters, &DeadReasons}},
	{Verb: "dead show", Routes: []*Operation{&DeadLetter}},
	{Verb: "dead retry", Routes: []*Operation{&RetryLetters}},
	{Verb: "dead drop", Routes: []*Operation{&DropLetters}},
	{Verb: "docs ls", Routes: []*Operation{&Documents}},
	{Verb: "docs changed", Why: whyPage + " at the route of docs ls, with order=changed"},
	{Verb: "docs put", Routes: []*Operation{&CreateDocument, &PutDocument}},
	{Verb: "docs update", Why: "PUT with If-Match: * is it"},
	{Verb: "docs get", Routes: []*Operation{&Document}},
	{Verb: "docs rm", Routes: []*Operation{&RemoveDocument}},
	{Verb: "docs batch", Routes: []*Operation{&BatchDocuments}},
	{Verb: "docs history", Routes: []*Operation{&DocumentHistory}},
	{Verb: "docs lock", Routes: []*Operation{&LockDocument}},
	{Verb: "docs unlock", Routes: []*Operation{&UnlockDocument}},
	{Verb: "timers create", Routes: []*Operation{&CreateTimer}},
	{Verb: "timers update", Routes: []*Operation{&UpdateTimer}},
	{Verb: "timers rm", Routes: []*Operation{&DeleteTimer}},
	{Verb: "timers get", Routes: []*Operation{&Timer}},
	{Verb: "timers ls", Routes: []*Operation{&Timers}},
	{Verb: "timers fire", Routes: []*Operation{&FireTimer}},
	{Verb: "timers retry", Routes: []*Operation{&RetryTimer}},
	{Verb: "timers history", Routes: []*Operation{&TimerHistory}},
	{Verb: "timers status", Routes: []*Operation{&TimerGroups}},
	{Verb: "timers groups show", Routes: []*Operation{&TimerGroup}},
	{Verb: "timers groups apply", Routes: []*Operation{&SetTimerGroup}},

	{Verb: "alerts apply", Routes: []*Operation{&SetAlertGroup}},
	{Verb: "alerts ls", Routes: []*Operation{&Alerts}},
	{Verb: "alerts rules", Routes: []*Operation{&AlertGroups}},
	{Verb: "alerts rm", Routes: []*Operation{&RemoveAlertGroup}},
	{Verb: "alerts test", Routes: []*Operation{&TryAlertGroup}},
	{Verb: "alerts history", Routes: []*Operation{&AlertHistory}},

	{Routes: []*Operation{&Event, &Around}, Why: "a page of events on a screen asks for them; the command line has `query`"},
	{Routes: []*Operation{&Search, &SearchCount}, Why: "a page of events on a screen merges topics; the command line asks each with `query`"},
	{Routes: []*Operation{&SavedSearches, &SaveSearch, &RemoveSearch}, Why: "the page lists them; a shell has scripts and aliases for `query`"},
	{Routes: []*Operation{&LoadDocuments}, Why: "`docs get` loads one; a list of ids is for programs"},
	{Routes: []*Operation{&DocumentLock}, Why: "`docs locks` lists all"},
	{Routes: []*Operation{&Jobs, &Job, &CancelJob}, Why: "jobs are how HTTP does what a verb waits for"},
	{Routes: []*Operation{&Statement, &CancelStatement}, Why: "the command line runs one statement at a time, and Ctrl-C ends it"},
	{Routes: []*Operation{&SQLSchema}, Why: "SHOW TABLES and DESCRIBE TABLE are statements of `sql`"},
	{Routes: []*Operation{&ClickHouse, &ClickHousePost, &ClickHousePing}, Why: "clients of ClickHouse speak it; `sql` is the verb"},
	{Verb: "mcp", Routes: []*Operation{&MCP}},
	{Routes: []*Operation{&Metrics, &Specification}, Why: whyForClients},

	{Verb: "up", Why: whyRuns},
	{Verb: "router", Why: whyRuns},
	{Verb: "sink", Why: whyRuns},
	{Verb: "gateway", Why: whyRuns},
	{Verb: "timers run", Why: whyRuns},
	{Verb: "config check", Why: whyLocal},
	{Verb: "config show", Why: whyLocal},
	{Verb: "config nats", Why: whyLocal},
	{Verb: "config clickhouse", Why: whyLocal},
	{Verb: "setup", Why: whyServers},
	{Verb: "man", Why: whyLocal},
	{Verb: "version", Why: whyLocal + "; GET /version answers beside the API"},
	{Verb: "bench", Why: whyLocal},
	{Verb: "doctor", Why: "/readyz says whether a gateway's parts answer; the verb asks the servers"},
	{Verb: "top", Why: "GET /v1/status and GET /metrics are what it shows"},
	{Verb: "ready", Why: "GET /readyz answers beside the API; the verb asks it"},
	{Verb: "topics rm", Why: whyUndone},
	{Verb: "streams", Why: "GET /v1/lag has how full they are"},
	{Verb: "streams ls", Why: "GET /v1/lag has how full they are"},
	{Verb: "streams apply", Why: whyServers},
	{Verb: "repair", Why: whyServers},
	{Verb: "rebuild", Why: whyServers},
	{Verb: "backup", Why: whyServers},
	{Verb: "restore", Why: whyServers},
	{Verb: "erase export", Why: whyServers},
	{Verb: "erase redact", Why: whyUndone},
	{Verb: "erase forget", Why: whyUndone},
	{Verb: "audit seal", Why: "a seal is kept by who does not trust the servers"},
	{Verb: "usage close", Why: "a close is done once a month, by who sends the bills"},
	{Verb: "usage corrections", Why: "it goes with `usage close`"},
	{Verb: "docs import", Why: whyManyCalls},
	{Verb: "docs export", Why: whyManyCalls},
	{Verb: "docs status", Why: whyReadsAll},
	{Verb: "docs locks", Why: whyReadsAll},
	{Verb: "timers import", Why: whyManyCalls},
	{Verb: "timers export", Why: whyManyCalls},
	{Verb: "timers pause", Why: "PUT of the group's settings is it"},
	{Verb: "timers resume", Why: "PUT of the group's settings is it"},
	{Verb: "timers groups ls", Why: "GET /v1/timers lists them with how their timers are"},
}

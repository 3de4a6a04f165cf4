package api

import (
	"reflect"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/gateway/jobs"
	"github.com/almanac-events/almanac/internal/gateway/lines"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/maintenance/declare"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/operations/openapi"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/series"
	"github.com/almanac-events/almanac/query/trail"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// Answers that are lists under a name.
type (
	topicList struct {
		Topics []schemas.Topic `json:"topics"`
	}
	shardList struct {
		Shards []query.ShardRow `json:"shards"`
	}
	erasureList struct {
		Erasures []ledger.Erasure `json:"erasures"`
	}
	jobList struct {
		Jobs []jobs.Job `json:"jobs"`
	}
	letterList struct {
		Dead []query.DeadLetter `json:"dead"`
	}
	tableList struct {
		Tables []query.SQLTable `json:"tables"`
	}
	reasonList struct {
		Reasons []query.DeadCount `json:"reasons"`
	}
	documentList struct {
		Documents []*documents.Document `json:"documents"`
	}
	groupList struct {
		Groups []timers.Status `json:"groups"`
	}
	timerInFlight struct {
		InFlight bool `json:"in_flight"`
	}
)

// errorAnswer is a refusal, as package request writes it.
type errorAnswer struct {
	Error *request.Error `json:"error"`
}

// refusedLines is a refusal of events: with the lines, where it is for them.
type refusedLines struct {
	lines.Answer
}

// shownEvent are the members that an event of any kind may have; promoted fields of its topic are beside them.
type shownEvent struct {
	Time       string            `json:"ts"`
	ID         string            `json:"id"`
	Level      string            `json:"level"`
	Service    string            `json:"service"`
	Type       string            `json:"type"`
	User       string            `json:"user_id"`
	Trace      string            `json:"trace_id"`
	Span       string            `json:"span_id"`
	Message    string            `json:"message"`
	Attributes map[string]string `json:"attributes"`
	Month      int               `json:"month"`
	Shard      string            `json:"shard"`
	Pos        uint64            `json:"pos"`
}

// types are those of answers and bodies, by the names that the operations give them.
var types = openapi.Types{
	Named: map[string]any{
		"Error": errorAnswer{}, "DocumentRefusal": documentRefusal{}, "ChangeRefusal": changeRefusal{}, "RefusedLines": refusedLines{},
		"Topics": topicList{}, "Topic": schemas.Topic{}, "TopicPlan": declare.Plan{}, "TopicRequest": topicRequest{}, "TopicField": topicField{}, "TopicRotation": topicRotation{}, "Shards": shardList{}, "Lag": query.LagReport{}, "Status": Status{},
		"Event": shownEvent{}, "Page": query.Page{}, "SearchPage": query.SearchPage{}, "SearchCount": query.SearchCount{}, "Accepted": lines.Answer{}, "Around": query.Around{},
		"Count": counted{}, "Histogram": query.Histogram{}, "Facets": query.Facets{}, "Fields": query.FieldNames{}, "Values": query.ValueNames{}, "ValueCount": query.ValueCount{},
		"SeriesList": listed{}, "Series": series.Series{}, "Aligned": series.Answer{}, "AlignedPoint": series.Point{},
		"Sizes": sizes{}, "TooLate": usage.TooLate{}, "Usage": usage.Report{}, "UsageDiffs": usage.Diffs{}, "UsageDiff": usage.Diff{}, "Trail": trail.Page{},
		"Proof": Proof{}, "Erasures": erasureList{}, "EraseRequest": eraseRequest{}, "ErasurePlan": erasure.Plan{}, "ErasureProof": erasure.Proof{},
		"ReplayRequest": replayRequest{}, "Job": jobs.Job{}, "Jobs": jobList{}, "SQLSchema": tableList{}, "Statement": Statement{}, "DeadLetters": letterList{}, "DeadReasons": reasonList{}, "DeadLetter": query.DeadLetter{}, "Settled": Letters{},
		"Document": documents.Document{}, "DocumentPage": documents.Page{}, "DocumentBatch": batchRequest{}, "DocumentChange": documents.Change{}, "DocumentLock": documents.Lock{}, "LockRequest": lockRequest{}, "LoadRequest": loadRequest{},
		"Alerts": alerts.Overview{}, "AlertHistory": alerts.Page{}, "AlertTrial": alerts.Trial{}, "AlertGroups": alertGroups{}, "AlertGroup": alerts.Group{}, "SavedSearches": searchList{}, "SavedSearch": registry.Search{},
		"AnyObject":   openapi.Schema{Type: "object"},
		"TimerGroups": groupList{}, "TimerGroup": groupView{}, "TimerGroupRequest": groupRequest{}, "Timer": timerView{}, "TimerChanged": timerChanged{}, "Timers": timerPage{}, "TimerRequest": timerRequest{}, "Exported": Exported{}, "RetryPolicy": retryRequest{}, "InFlight": timerInFlight{},
	},
	Known: map[reflect.Type]openapi.Schema{
		reflect.TypeFor[alerts.Span]():         {Type: "string", Description: "A length of time, such as 15m"},
		reflect.TypeFor[alerts.AlertState]():   {Type: "string", Enum: words(alerts.AlertStates...)},
		reflect.TypeFor[series.Number]():       {Description: "A number; a text when it is not finite"},
		reflect.TypeFor[trail.Body]():          {Description: "A resource, or what stands in for a body that was cut"},
		reflect.TypeFor[timer.State]():         {Type: "string", Enum: words(timer.StatePending, timer.StateFiring, timer.StateDone, timer.StateFailed, timer.StateCancelled)},
		reflect.TypeFor[timer.Op]():            {Type: "string", Enum: words(timer.Created, timer.Updated, timer.Firing, timer.Done, timer.Failed, timer.Retry, timer.Rescheduled, timer.Cancelled, timer.Restored)},
		reflect.TypeFor[jobs.State]():          {Type: "string", Enum: words(jobs.Queued, jobs.Running, jobs.Done, jobs.Failed, jobs.Cancelled)},
		reflect.TypeFor[StatementState]():      {Type: "string", Enum: words(statementRuns, statementDone, statementFailed, statementCancelled)},
		reflect.TypeFor[ledger.State]():        {Type: "string", Enum: words(ledger.Waiting, ledger.Erasing, ledger.Erased)},
		reflect.TypeFor[registry.SearchKind](): {Type: "string", Enum: words(registry.OfEvents, registry.OfCharts)},
		reflect.TypeFor[replay.Order]():        {Type: "string", Enum: words(replay.ByPosition, replay.ByTime)},
	},
	Requests: map[string][]string{
		"RefusedLines": {"error"}, "Event": nil, "TopicRequest": nil, "TopicField": {"name", "type"}, "TopicRotation": nil, "EraseRequest": {"topic"}, "ReplayRequest": {"topic", "into"},
		"DocumentBatch": {"changes"}, "DocumentChange": {"op"}, "Exported": nil, "LoadRequest": {"ids"}, "LockRequest": nil, "TimerRequest": nil, "TimerGroupRequest": nil, "RetryPolicy": nil, "AlertGroup": {"rules"}, "SavedSearch": {"topics"},
	},
	Members: map[string]openapi.Schema{
		"Error.error":                      {Required: []string{"code", "message", "request_id"}},
		"DocumentRefusal.error":            {Required: []string{"code", "message", "request_id"}},
		"RefusedLines.error":               {Required: []string{"code", "message", "request_id"}},
		"Error.error.message":              {MinLength: 1},
		"Error.error.request_id":           {MinLength: 1},
		"DocumentRefusal.error.message":    {MinLength: 1},
		"DocumentRefusal.error.request_id": {MinLength: 1},
		"DocumentChange.if_version":        {Minimum: &one},
		"DocumentChange.lock":              {Minimum: &one},
		"DocumentChange.body":              {Type: "object"},
		"Exported":                         {Description: "Where the timer was exported, as almanac timers export says it. Its time may have passed, and it is not created again where it is there or was called"},
		"Histogram":                        {Required: []string{"count", "step", "shards"}},
		"TimerGroup":                       {Required: []string{"group", "created_at", "slots"}},
		"Job.request":                      {Type: "object"},
		"Job.result":                       {Type: "object"},
		"TooLate":                          {Description: "Diffs that came when retention had taken their months, and are in no bill; of the whole topic"},
		"TooLate.more":                     {Description: "There are more dead letters than were looked at"},
		"Sizes.sizes.size":                 {Pattern: wholeNumber},
		"Usage.bills.size_start":           {Pattern: wholeNumber},
		"Usage.bills.size_end":             {Pattern: wholeNumber},
		"Usage.bills.usage":                {Pattern: wholeNumber},
		"Page.events":                      {Type: "array", Items: openapi.Ref("Event")},
		"SearchPage.events.event":          {Ref: "#/components/schemas/Event"},
		"Around.before":                    {Type: "array", Items: openapi.Ref("Event")},
		"Around.event":                     *openapi.Ref("Event"),
		"Around.after":                     {Type: "array", Items: openapi.Ref("Event")},
		"Topic.fields":                     {Nullable: true},
		"TopicRequest.fields":              {Type: "array", Items: openapi.Ref("TopicField"), Nullable: true},
		"TopicRequest.rotate":              *openapi.Ref("TopicRotation"),
		"TopicRequest.version":             {Description: "Not read"},
		"TopicPlan.did":                    {Enum: []string{"created", "changed", "unchanged", "would be created", "would be changed", "would stay unchanged"}},
		"TopicPlan.sooner":                 {Description: "Shards that go, or are cleared, sooner; the first 100"},

		"Accepted.refused.element":      {Description: "Of the array that the body is, from 1"},
		"Accepted.no_time":              {Description: "Accepted records that said no time and got now"},
		"Accepted.time_fields":          {Description: "Keys of those that may have been meant for it: name one as ts_field"},
		"Accepted.erased_since":         {Description: "Erasures that may have taken events of a repeated request after it was stored; those are not stored again"},
		"Usage.contradictions":          {Description: "Copies that have another delta or customer than the diff that counts"},
		"UsageDiffs.contradictions":     {Description: "Copies that have another delta or customer than the diff that counts; on the first page, the first 100"},
		"ErasurePlan.diffs":             {Description: "From sums of months whose rows retention dropped"},
		"ErasureProof.matching_diffs":   {Description: "In the sums of months whose rows retention dropped"},
		"ErasureProof.kept_sums":        {Description: "Months whose sums may stand for such events and do not tell them apart"},
		"DeadLetter.id":                 {Description: "Number and time: a number alone is given again after the stream lost its end", Example: "4711@2026-11-20T12:00:00.123456789Z"},
		"Trail.entries.state":           {Enum: kindStates},
		"Trail.entries.history.state":   {Enum: kindStates},
		"Job.id":                        {Pattern: "^[0-9a-f]{16}$"},
		"Job.kind":                      {Enum: []string{kindErasure, kindReplay, kindLetters, kindVerify}},
		"Document.op":                   {Enum: []string{"stored", "updated", "removed"}},
		"Document.body":                 {Type: "object", Nullable: true, Description: "Null where retention cleared it"},
		"DocumentPage.documents":        {Type: "array", Items: openapi.Ref("Document")},
		"DocumentBatch.changes":         {MinItems: 1, MaxItems: documents.MaxBatch},
		"DocumentChange.op":             {Enum: []string{"create", "put", "update", "remove"}},
		"DocumentChange.path":           {Description: "Of a document that the change creates; one that is there must be under it"},
		"DocumentRefusal.have":          {Description: "The version that is there"},
		"DocumentRefusal.have_path":     {Description: "The path that the document is under, where another was named"},
		"DocumentRefusal.changes":       {Description: "All changes for which a batch was refused"},
		"ChangeRefusal.index":           {Description: "Counts from 0"},
		"DocumentLock.until":            {Description: "By the clock of NATS"},
		"LockRequest.for":               {Description: "1s to 1h; 30s unless told"},
		"LockRequest.by":                {Description: "Who holds it"},
		"LockRequest.token":             {Minimum: &one, Description: "Renew this lock"},
		"LoadRequest.ids":               {MaxItems: 1000},
		"TimerRequest":                  {Additional: true, Description: "Names with capitals, such as executeAt and callbackUrl, are taken too"},
		"TimerGroupRequest":             {Additional: true},
		"TimerGroupRequest.answer":      {Enum: []string{"", timer.AnswerJSON, timer.AnswerStatus}},
		"TimerGroup.answer":             {Enum: []string{"", timer.AnswerJSON, timer.AnswerStatus}},
		"RetryPolicy":                   {Additional: true},
		"Event":                         {Additional: true},
		"Document":                      {Nullable: true},
		"TimerRequest.execute_at":       {Description: "RFC 3339, or +2s from now"},
		"RetryPolicy.max_retries":       {Description: "One less than max_attempts, in its place"},
		"TimerGroupRequest.max_pending": {Description: "Timers that are not over; more are refused"},
		"TimerGroupRequest.max_bytes":   {Description: "Bytes of TIMERS that the group's timers may hold, each with 1,280 for its end. Default: as many as are free"},
		"Timer.executed_at":             {Description: "When it was done or failed; null before, and where it was cancelled"},
		"Timer.life":                    {Format: "uuid"},
	},
}

var one = 1

// wholeNumber is a number as a text, which may be larger than a client's own.
const wholeNumber = "^-?[0-9]+$"

var kindStates = []string{kinds.StatePreCommitted, kinds.StateCommitted, kinds.StateRolledBack}

// words are the values of a type of texts.
func words[T ~string](all ...T) []string {
	out := make([]string, len(all))
	for i, w := range all {
		out[i] = string(w)
	}
	return out
}

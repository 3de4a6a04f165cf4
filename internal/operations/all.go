package operations

// All lists the operations: those of a subject stand together.
var All = []*Operation{
	&Topics, &Topic, &Shards, &Lag,
	&Events, &SendEvents, &Event, &Around, &Tail,
	&Count, &Histogram, &Facets, &Fields, &Values,
	&Series, &Align, &Usage, &UsageDiffs, &Trail,
	&SQL, &ClickHouse, &ClickHousePost, &ClickHousePing,
	&Proof, &Verify, &Erasures, &Erase, &ShowErasure, &ResumeErasure, &Replay,
	&DeadLetters, &DeadLetter, &RetryLetters, &DropLetters,
	&Jobs, &Job, &CancelJob,
	&Documents, &CreateDocument, &BatchDocuments, &LoadDocuments, &Document, &PutDocument, &RemoveDocument, &DocumentHistory, &DocumentLock, &LockDocument, &UnlockDocument,
	&TimerGroups, &Timers, &CreateTimer, &TimerGroup, &SetTimerGroup, &Timer, &UpdateTimer, &DeleteTimer, &FireTimer, &RetryTimer, &TimerHistory,
	&Metrics, &Specification,
}

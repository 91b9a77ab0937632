// The records that each commit writes beside the group: its number and the counters.
//
// Pure functions, safe to call from any thread. Errors: those of the key-value store; kCorruption
// for malformed records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/meta/metadata_store.h"

namespace siltfs {

void AddTo(Counters& sum, const Counters& differences);

// 0 if nothing was committed yet.
Result<uint64_t> LoadCommitNumber(const KvStore& kv);
std::string EncodeCommitNumber(uint64_t number);
Result<Counters> LoadCounters(const KvStore& kv, uint64_t last_commit);
std::string EncodeCounters(const Counters& counters);
// The inodes, directories included, that the live files have in this state; 0 if nothing was
// committed yet.
Result<uint64_t> CountInodes(const KvSnapshot& metadata);

// kInvalidArgument if a mutation has a key that only MetadataStore itself writes.
Status RefuseOwnKeys(const std::vector<Mutation>& mutations);
Status RefuseOwnKeys(const KvRun& run);

}  // namespace siltfs

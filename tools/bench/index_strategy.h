// Which index the benchmark measures: an engine with its parameters. For SILT, a strategy names the
// choices of the paper or of siltfs, and kinds of stores can be left out as in figure 10 of the
// paper.
//
// Errors: kInvalidArgument, with one sentence. Thread-safety: plain values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "index/chunk_index.h"
#include "index/index_engine.h"
#include "store/env/env.h"

namespace siltfs {

struct IndexChoice {
  std::string engine = "silt";
  std::string strategy = "default";
  std::vector<std::string> parameters = {};  // NAME=VALUE, besides those of the strategy
  std::vector<std::string> without = {};     // kinds of stores: "hash", "sorted"
};

std::vector<std::string> IndexStrategyNames();
std::vector<std::string> IndexKindsToLeaveOut();

// Parses engines with parameters, such as "silt" or "silt:partition_bits=4:tries=1"; "all" stands
// for all engines. Throws BenchFailure for a text that CheckEngineChoice refuses.
std::vector<IndexChoice> ParseEngineChoices(const std::vector<std::string>& texts);
// Returns why the text is refused; empty if it is not.
std::string CheckEngineChoice(const std::string& text);

// Checks the choice, and returns the engine's parameters.
Result<EngineParameters> ParametersOf(const IndexChoice& choice);
// Returns how the index leaves out kinds of stores, as sentences. Empty if it has all kinds.
std::string HowWithout(const IndexChoice& choice);
// Returns the size of a slot in bytes; 0 if the engine is not SILT.
size_t SlotBytesOf(const EngineParameters& parameters, const IndexChoice& choice);

// Opens a new index in `directory`.
Result<std::unique_ptr<ChunkIndex>> OpenChosenIndex(Env& env, const IndexChoice& choice,
                                                    const std::string& directory,
                                                    uint64_t memory_limit);

}  // namespace siltfs

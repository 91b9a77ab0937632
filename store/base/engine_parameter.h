// Parameters of an exchangeable engine, chosen at mkfs and kept in the superblock: a short list of
// named numbers. An engine declares the parameters that it knows; the functions here check a list
// against that declaration. docs/extending.md says how an engine uses them.
//
// Functions and plain values, safe to use from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/result.h"

namespace siltfs {

// Limits of the superblock's fields (docs/format.md).
inline constexpr size_t kEngineNameSize = 16;           // bytes
inline constexpr size_t kEngineParameterNameSize = 24;  // bytes
inline constexpr size_t kMostEngineParameters = 16;

struct EngineParameter {
  std::string name;
  uint64_t value = 0;

  friend bool operator==(const EngineParameter&, const EngineParameter&) = default;
};

// Parameters that differ from an engine's defaults; each name at most once, in any order.
using EngineParameters = std::vector<EngineParameter>;

// An engine's declaration of a parameter. The characters of `name` must exist as long as the
// program uses the engine.
struct EngineParameterSpec {
  std::string_view name;
  uint64_t least = 0;
  uint64_t most = 0;
  uint64_t value = 0;  // the default
};

// Whether `name` can be the name of an engine or a parameter. Such a name has only lower-case
// letters, digits and underscores, begins with a letter, and has at most `size` bytes.
bool IsEngineWord(std::string_view name, size_t size);

// Checks that every parameter is one of `specs`, is given once and is in its range.
// kInvalidArgument with one sentence that names the engine and the parameter.
Status CheckEngineParameters(std::string_view engine, std::span<const EngineParameterSpec> specs,
                             std::span<const EngineParameter> parameters);

// The value of a parameter, or its default.
uint64_t ValueOf(const EngineParameterSpec& spec, std::span<const EngineParameter> parameters);

// Parses "NAME=VALUE", where VALUE is a decimal number. kInvalidArgument for other text.
Result<EngineParameter> ParseEngineParameter(std::string_view text);

}  // namespace siltfs

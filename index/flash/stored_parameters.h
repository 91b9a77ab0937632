// The parameters of an engine in the manifest of its index: all of them, so that an index keeps the
// values that it was made with, whatever the defaults become.
//
// Functions only, safe to call from any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "store/base/bytes.h"
#include "store/base/engine_parameter.h"

namespace siltfs {

std::string EncodeEngineParameters(std::span<const EngineParameterSpec> specs,
                                   const EngineParameters& parameters);
// kCorruption for bytes that are not as EncodeEngineParameters writes them, kNeedsNewer for an
// unknown parameter or a value out of its range.
Result<EngineParameters> DecodeEngineParameters(std::string_view engine,
                                                std::span<const EngineParameterSpec> specs,
                                                ByteView bytes);

}  // namespace siltfs

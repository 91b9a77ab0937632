#include "index/flash/stored_parameters.h"

#include "store/base/coding.h"

namespace siltfs {

std::string EncodeEngineParameters(std::span<const EngineParameterSpec> specs,
                                   const EngineParameters& parameters) {
  Encoder out;
  for (const EngineParameterSpec& spec : specs) {
    out.Text16(spec.name).U64(ValueOf(spec, parameters));
  }
  return out.Take();
}

Result<EngineParameters> DecodeEngineParameters(std::string_view engine,
                                                std::span<const EngineParameterSpec> specs,
                                                ByteView bytes) {
  EngineParameters parameters;
  Decoder in(bytes);
  while (in.ok() && in.remaining() > 0) {
    std::string name(in.Text16());
    parameters.push_back({std::move(name), in.U64()});
  }
  if (!in.Done()) return Status(StatusCode::kCorruption, "has wrong parameters");
  const Status known = CheckEngineParameters(engine, specs, parameters);
  if (known.ok()) return parameters;
  return Status(StatusCode::kNeedsNewer, known.ToString());
}

}  // namespace siltfs

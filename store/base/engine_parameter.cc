#include "store/base/engine_parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace siltfs {
namespace {

Status Invalid(std::string cause) { return Status(StatusCode::kInvalidArgument, std::move(cause)); }

std::string NamesOf(std::span<const EngineParameterSpec> specs) {
  std::string names;
  for (const EngineParameterSpec& spec : specs)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", spec.name);
  return names.empty() ? "none" : names;
}

}  // namespace

bool IsEngineWord(std::string_view name, size_t size) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto allowed = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= size && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), allowed);
}

Status CheckEngineParameters(std::string_view engine, std::span<const EngineParameterSpec> specs,
                             std::span<const EngineParameter> parameters) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, value] = parameters[i];
    const auto spec = std::find_if(specs.begin(), specs.end(), [&name = name](const auto& known) {
      return known.name == name;
    });
    if (spec == specs.end()) {
      return Invalid(fmt::format("engine {} has no parameter \"{}\" (there are: {})", engine, name,
                                 NamesOf(specs)));
    }
    if (value < spec->least || value > spec->most) {
      return Invalid(fmt::format("engine {}: {} is not a value from {} to {} for parameter {}",
                                 engine, value, spec->least, spec->most, name));
    }
    const auto earlier = parameters.first(i);
    if (std::any_of(earlier.begin(), earlier.end(),
                    [&name = name](const auto& one) { return one.name == name; })) {
      return Invalid(fmt::format("engine {}: parameter {} is given twice", engine, name));
    }
  }
  return Status::Ok();
}

uint64_t ValueOf(const EngineParameterSpec& spec, std::span<const EngineParameter> parameters) {
  for (const EngineParameter& parameter : parameters) {
    if (parameter.name == spec.name) return parameter.value;
  }
  return spec.value;
}

Result<EngineParameter> ParseEngineParameter(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals != std::string_view::npos) {
    const std::string_view digits = text.substr(equals + 1);
    EngineParameter parameter{.name = std::string(text.substr(0, equals))};
    const auto [rest, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), parameter.value);
    const bool whole = error == std::errc() && rest == digits.data() + digits.size();
    if (whole && IsEngineWord(parameter.name, kEngineParameterNameSize)) return parameter;
  }
  return Invalid(fmt::format("\"{}\" is not NAME=VALUE with a whole number, as in depth=4", text));
}

}  // namespace siltfs

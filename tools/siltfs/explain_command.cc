// siltfs explain
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "tools/siltfs/command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/message_table.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

struct ExplainArguments {
  std::string id;
  bool json = false;
};

Json ToJson(const MessageRow& row) {
  return {{"id", row.id}, {"text", row.text}, {"cause", row.cause}, {"remedy", row.remedy}};
}

std::string Upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

ExitCode RunExplain(const ExplainArguments& arguments, Surroundings& surroundings) {
  if (arguments.id.empty()) {
    Json all = Json::array();
    for (const MessageRow* row : AllMessages()) {
      all.push_back(ToJson(*row));
      if (!arguments.json) surroundings.out << fmt::format("{}  {}\n", row->id, row->text);
    }
    if (arguments.json) PrintJson(surroundings, {{"messages", std::move(all)}});
    return ExitCode::kDone;
  }
  const MessageRow* row = FindMessageById(Upper(arguments.id));
  if (row == nullptr) {
    return Fail(surroundings, ExitCode::kUsage,
                fmt::format("no message has the identifier \"{}\"", arguments.id));
  }
  if (arguments.json) {
    PrintJson(surroundings, ToJson(*row));
    return ExitCode::kDone;
  }
  surroundings.out << fmt::format("{}{}{}\n  Cause: {}\n  What to do: {}.\n", row->id,
                                  row->text.empty() ? "" : ": ", row->text, row->cause,
                                  row->remedy);
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> ConfigureExplain(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<ExplainArguments>();
  app.add_option("ID", arguments->id,
                 "The identifier at the end of a message, such as S0201; without it, all messages "
                 "are listed");
  app.add_flag("--json", arguments->json, "Print one JSON document");
  return [arguments, &surroundings] { return RunExplain(*arguments, surroundings); };
}

}  // namespace siltfs

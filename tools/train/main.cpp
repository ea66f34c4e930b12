/// `train`: trains an MLP, a ResNet or a GPT from the command line.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>

#include "core/check.h"
#include "tools/train/session.h"
#include "tools/train/signals.h"

namespace crucible::train {
namespace {

void train(Session& session) {
  while (!session.done()) {
    auto pass = session.loader().epoch(session.epoch(), Device::cpu(), session.next_batch());
    for (const auto& [inputs, targets] : pass) {
      session.batch_arrived();
      session.trainer().accumulate(inputs, targets);
      if (!session.trainer().window_full()) continue;
      session.update(pass.next_batch());
      if (session.stopping()) break;
    }
    // The last window of an epoch may be short.
    if (session.trainer().pending() > 0) session.update(session.loader().batches());
    if (!session.stopping()) session.end_epoch();
  }
  session.finish();
}

/// The folder that the flags name, else the one that is resumed, else a new one below runs/.
RunFolder open_folder(const Options& options, const ResumePoint& resume) {
  namespace fs = std::filesystem;
  const fs::path path = options.output      ? fs::path(*options.output)
                        : resume.checkpoint ? resume.run
                                            : default_run_path(options.model);
  std::error_code error;
  if (resume.checkpoint && fs::equivalent(path, resume.run, error)) {
    return RunFolder(path, RunFolder::Use::resume);
  }
  // A run that died before its first checkpoint is begun again.
  const bool begun = options.resume == "auto" && fs::exists(path / "metrics.jsonl", error);
  return RunFolder(path,
                   options.overwrite || begun ? RunFolder::Use::overwrite : RunFolder::Use::fresh);
}

/// Cheap checks first: nothing is read before the device, the paths and the run folder are known to
/// be good.
int run(const Options& options) {
  const StopSignals signals;
  Progress progress(Progress::mode_for(stdout, options.quiet), stdout);
  const Device device = prepare_device(options);
  check_data_path(options);
  if (options.dump_groups) {
    const DataSource data = open_data(options);
    const Settings settings = resolve(options, data);
    const auto model = make_model(settings, data, device);
    const auto optimizer = make_optimizer(settings, model->parameters());
    std::fputs(parameter_table(model->parameters(), *optimizer).c_str(), stdout);
    return 0;
  }

  ResumePoint resume = find_checkpoint(options);
  if (options.resume && !resume.checkpoint) progress.say("no checkpoint yet: starting a new run");
  RunFolder folder = open_folder(options, resume);
  std::unique_ptr<Session> session;
  try {
    session = std::make_unique<Session>(options, device, open_data(options), folder,
                                        std::move(resume), progress);
    train(*session);
  } catch (const std::exception& e) {
    progress.clear();
    const auto* error = dynamic_cast<const Error*>(&e);
    // Input that was refused leaves nothing behind; a run that failed leaves a record.
    if (session && (session->trained() || !error || error->exit_code() == 1)) {
      const bool oom = dynamic_cast<const OutOfMemory*>(&e) != nullptr;
      session->record_failure(oom ? "oom" : "error", e.what());
    } else {
      folder.discard_if_created();
    }
    throw;
  }
  return 0;
}

}  // namespace
}  // namespace crucible::train

int main(int argc, char** argv) {
  using namespace crucible;
  try {
    const train::Parsed parsed = train::parse_options({argv + 1, argv + argc});
    if (!parsed.text_to_print.empty()) {
      std::fputs(parsed.text_to_print.c_str(), stdout);
      return 0;
    }
    return train::run(parsed.options);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return e.exit_code();
  } catch (const std::bad_alloc&) {
    std::fputs("train: the host has no memory left; set a smaller --batch-size.\n", stderr);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train: %s\n", e.what());
  }
  return 1;
}

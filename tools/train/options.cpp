#include "tools/train/options.h"

#include <algorithm>
#include <iterator>

#include "core/check.h"
#include "tools/train/build_info.h"
#include "tools/train/flags.h"

namespace crucible::train {
namespace {

constexpr const char* examples = R"(Examples:
  train --model resnet                              Fashion-MNIST where found, else synthetic data
  train --model resnet --gpu 0 --epochs 10          on the first GPU
  train --model mlp --data-dir ~/mnist --epochs 3   a folder with IDX files
  train --model resnet50 --data-dir ~/photos        a folder of images, one sub-folder a class
  train --model gpt --data-dir book.txt --steps 500 a text file, byte by byte
  train --model gpt2 --load gpt2.safetensors --data-dir book.txt --tokenizer ~/gpt2
  train --model resnet --output runs/a --resume auto  go on where the run in runs/a stopped

Ctrl-C saves a checkpoint and stops; a second one stops at once.
Exit codes: 0 success (also after Ctrl-C), 1 the run failed, 2 bad usage or input.)";

constexpr Interval positive{1, 1 << 30};
constexpr Interval count_or_zero{0, 1e12};

void declare_model(Flags& f, Options& o) {
  f.group("Model");
  f.text("--model", "NAME", o.model,
         "mlp, resnet (20 up to 64-pixel images, 50 above), resnet18/34/50/101/152, "
         "resnet20/32/44/56, gpt (as gpt-nano), gpt-nano, gpt-micro, gpt2, gpt2-medium, "
         "gpt2-large, gpt2-xl");
  f.list("--hidden", o.hidden, "mlp: widths of the hidden layers (512,512)");
  f.integer("--layers", o.layers, {1, 1024}, "gpt: transformer blocks");
  f.integer("--heads", o.heads, {1, 1024}, "gpt: attention heads");
  f.integer("--width", o.width, {1, 1 << 20}, "gpt: size of an embedding");
  f.integer("--context", o.context, {1, 1 << 20}, "gpt: longest sequence");
  f.integer("--vocab", o.vocab, {1, 1 << 24}, "gpt: vocabulary (what the data need)");
  f.number("--dropout", o.dropout, {0, 1, false, true}, "gpt: dropout probability (0)");
  f.text("--load", "FILE", o.load, "start from the weights in a safetensors file");
  f.flag("--partial", o.partial, "with --load: take what fits, list what does not");
}

void declare_device(Flags& f, Options& o) {
  f.group("Device");
  f.text("--device", "NAME", o.device, "cpu, cuda or cuda:N (GPU 0 if there is one, else the CPU)");
  f.text("--gpu", "N", o.gpu, "short for --device cuda:N");
  f.integer("--threads", o.threads, {1, 1024}, "CPU threads (all that the process may use)");
  f.text("--precision", "NAME", o.precision,
         "fp32, or mixed precision on f32 weights: bf16, fp16 (scales the loss) (fp32)");
  f.flag("--amp", o.amp, "short for --precision bf16, or what --amp-dtype says");
  f.choice("--amp-dtype", o.amp_dtype, {"bf16", "fp16", "bfloat16", "float16"},
           "with --amp: bf16 or fp16 (bf16)");
  f.bytes("--mem-limit", o.mem_limit, "most memory to reserve on the device, as 24GiB");
  f.flag("--deterministic", o.deterministic,
         "equal runs give equal bits (always so on the CPU with equal --threads)");
}

void declare_data(Flags& f, Options& o) {
  f.group("Data");
  f.text("--data-dir", "PATH", o.data_dir,
         "IDX (MNIST) or CIFAR files, a folder of images a class, text, or token .bin files; "
         "gpt also takes one file");
  f.choice("--dataset", o.dataset,
           {"auto", "fashion-mnist", "synthetic", "idx", "cifar10", "cifar100", "image-folder",
            "text", "tokens"},
           "what is used, or what --data-dir must hold: auto, fashion-mnist, synthetic, idx, "
           "cifar10, cifar100, image-folder, text, tokens (auto)");
  f.text("--tokenizer", "DIR", o.tokenizer,
         "gpt on text: 'bytes', or a folder with GPT-2's vocab.json and merges.txt (bytes)");
  f.integer("--seq-len", o.seq_len, {1, 1 << 20}, "gpt: tokens of a sample (the context)");
  f.integer("--image-size", o.image_size, {8, 4096},
            "side of synthetic images (32, or 224 for resnet18 to 152) and of images from folders "
            "(224)");
  f.integer("--synthetic-samples", o.synthetic_samples, {1, 1e9},
            "synthetic: training samples (10000); a tenth as many to test on");
  f.choice("--augment", o.augment, {"auto", "none", "crop", "crop-flip"},
           "auto (what is usual for the data), none; IDX and CIFAR also crop (moved by up to an "
           "eighth), crop-flip (also mirrored)");
  f.integer("--workers", o.workers, {0, 256}, "threads that prepare batches (1; folders: 2)");
  f.flag("--skip-bad", o.skip_bad, "leave unreadable samples out (up to 1 %) instead of stopping");
}

void declare_length(Flags& f, Options& o) {
  f.group("Length and batch");
  f.integer("-b,--batch-size", o.batch_size, {1, 1 << 24}, "samples of a micro-batch, per GPU");
  f.integer("--grad-accum-steps", o.grad_accum_steps, {1, 1 << 20},
            "micro-batches of one update (1)");
  f.integer("--global-batch-size", o.global_batch_size, {1, 1 << 30},
            "samples of one update over all GPUs; sets --grad-accum-steps");
  f.integer("--epochs", o.epochs, {1, 1e6}, "passes over the training data");
  f.integer("--steps", o.steps, {1, 1e12}, "updates, instead of --epochs");
  f.number("--target-accuracy", o.target_accuracy, {0, 1, true, false},
           "stop once the test accuracy reaches this share, as 0.9");
  f.integer("--stop-after", o.stop_after, {1, 1e12},
            "save and stop after this update, to be resumed; schedules do not change");
  f.integer("--seed", o.seed, {0, 9.2e18}, "of weights, order, augmentation, dropout (42)");
}

void declare_optimizer(Flags& f, Options& o) {
  f.group("Optimizer");
  f.choice("--opt", o.opt, {"sgd", "adamw"}, "sgd or adamw (resnet: sgd, else adamw)");
  f.number("--lr", o.lr, {0, 1e6}, "learning rate after warm-up");
  f.number("--momentum", o.momentum, {0, 1, false, true}, "sgd (0.9)");
  f.flag("--nesterov", o.nesterov, "sgd: Nesterov's momentum");
  f.number("--weight-decay", o.weight_decay, {0, 1e6}, "not on biases and norm gains");
  f.number("--beta1", o.beta1, {0, 1, false, true}, "adamw (0.9)");
  f.number("--beta2", o.beta2, {0, 1, false, true}, "adamw (0.999; gpt: 0.95)");
  f.number("--clip-grad", o.clip_grad, {0, 1e12}, "largest norm of the gradient; 0: off (gpt: 1)");
  f.choice("--sched", o.sched, {"constant", "step", "cosine", "linear"},
           "constant, step, cosine or linear (cosine)");
  f.integer("--lr-warmup-steps", o.lr_warmup_steps, count_or_zero,
            "updates over which the rate rises (5 % of all, at most 1000)");
  f.number("--min-lr", o.min_lr, {0, 1e6}, "cosine, linear: where they end (0; gpt: lr / 10)");
  f.integer("--lr-decay-steps", o.lr_decay_steps, {1, 1e12},
            "step: updates between decays (a third of all)");
  f.number("--lr-decay-rate", o.lr_decay_rate, {0, 1, true, false}, "step: factor (0.1)");
  f.number("--label-smoothing", o.label_smoothing, {0, 1, false, true}, "in training (0)");
}

void declare_run(Flags& f, Options& o) {
  f.group("Run");
  f.text("--output", "DIR", o.output, "run folder (runs/<date>-<model>-<n>)");
  f.flag("--overwrite", o.overwrite, "replace the run that --output holds");
  f.text("--resume", "PATH", o.resume,
         "a run folder or checkpoint to go on from; auto: the newest one of --output, or of runs/ "
         "for this model, if there is any");
  f.integer("--checkpoint-interval", o.checkpoint_interval, count_or_zero,
            "save every N updates; 0: after each epoch (0)");
  f.integer("--checkpoint-hist", o.checkpoint_hist, {1, 1e6}, "checkpoints to keep (3)");
  f.integer("--eval-interval", o.eval_interval, count_or_zero,
            "evaluate every N updates; 0: after each epoch (0)");
  f.integer("--eval-batches", o.eval_batches, count_or_zero,
            "batches of an evaluation; 0: all of the test data (0)");
  f.integer("--log-interval", o.log_interval, positive, "updates between two log lines (50)");
  f.flag("--quiet", o.quiet, "print errors only");
  f.flag("--dump-groups", o.dump_groups, "list every parameter with its weight decay, and leave");
  f.text("--log-sample-ids", "FILE", o.log_sample_ids,
         "append the numbers of the samples trained on, one line a batch");

  f.group("Sample of a gpt on text, after training");
  f.integer("--sample-tokens", o.sample_tokens, {0, 1 << 20}, "tokens to print; 0: none (256)");
  f.number("--temperature", o.temperature, {0, 100}, "0: always the likeliest token (0.8)");
  f.integer("--top-k", o.top_k, {0, 1 << 24}, "choose among the k likeliest; 0: all (40)");
  f.text("--prompt", "TEXT", o.prompt, "what the sample begins with (a line break)");
}

/// Refuses flags that the chosen model or optimizer would not look at.
class Applicable {
 public:
  template <class T>
  void only(bool applies, const char* flag, const std::optional<T>& value, const char* where) {
    only(applies, flag, value.has_value(), where);
  }
  void only(bool applies, const char* flag, bool given, const char* where) {
    check(applies || !given, "train: {} applies to {} only; leave it out.", flag, where);
  }
};

void check_applicable(const Options& o) {
  Applicable a;
  const bool gpt = is_gpt(o.model);
  a.only(is_mlp(o.model), "--hidden", o.hidden, "mlp");
  a.only(gpt, "--layers", o.layers, "gpt");
  a.only(gpt, "--heads", o.heads, "gpt");
  a.only(gpt, "--width", o.width, "gpt");
  a.only(gpt, "--context", o.context, "gpt");
  a.only(gpt, "--vocab", o.vocab, "gpt");
  a.only(gpt, "--dropout", o.dropout, "gpt");
  a.only(gpt, "--seq-len", o.seq_len, "gpt");
  a.only(gpt, "--tokenizer", o.tokenizer, "gpt");
  a.only(gpt, "--sample-tokens", o.sample_tokens, "gpt");
  a.only(gpt, "--temperature", o.temperature, "gpt");
  a.only(gpt, "--top-k", o.top_k, "gpt");
  a.only(gpt, "--prompt", o.prompt, "gpt");
  a.only(!gpt, "--target-accuracy", o.target_accuracy, "mlp and resnet");
  a.only(!gpt, "--image-size", o.image_size, "mlp and resnet");

  const std::string opt = o.opt.value_or(is_resnet(o.model) ? "sgd" : "adamw");
  a.only(opt == "sgd", "--momentum", o.momentum, "--opt sgd");
  a.only(opt == "sgd", "--nesterov", o.nesterov, "--opt sgd");
  a.only(opt == "adamw", "--beta1", o.beta1, "--opt adamw");
  a.only(opt == "adamw", "--beta2", o.beta2, "--opt adamw");
  const std::string sched = o.sched.value_or("cosine");
  a.only(sched == "step", "--lr-decay-steps", o.lr_decay_steps, "--sched step");
  a.only(sched == "step", "--lr-decay-rate", o.lr_decay_rate, "--sched step");
  a.only(sched == "cosine" || sched == "linear", "--min-lr", o.min_lr, "--sched cosine and linear");
  a.only(o.load.has_value(), "--partial", o.partial, "--load");
}

void check_consistent(const Options& o) {
  check(!o.model.empty(), "train: --model is missing; choose mlp, resnet or gpt (see --help).");
  check(is_mlp(o.model) || is_resnet(o.model) || is_gpt(o.model),
        "train: --model: '{}' is not known; choose mlp, resnet, resnet18, 34, 50, 101, 152, "
        "resnet20, 32, 44, 56, gpt, gpt-nano, gpt-micro, gpt2, gpt2-medium, gpt2-large or gpt2-xl.",
        o.model);
  check_applicable(o);
  check(!o.device || !o.gpu, "train: --device {} and --gpu {} are both given; give one.",
        o.device.value_or(""), o.gpu.value_or(""));
  check(!o.epochs || !o.steps, "train: --epochs {} and --steps {} are both given; give one.",
        o.epochs.value_or(0), o.steps.value_or(0));
  check(!o.resume || !o.overwrite, "train: --resume and --overwrite are both given; give one.");
  check(!o.overwrite || o.output, "train: --overwrite needs --output; name the run to replace.");
  check(!o.load || !o.resume, "train: --load and --resume are both given; give one.");
  check(!o.min_lr || !o.lr || *o.min_lr <= *o.lr, "train: --min-lr {} is above --lr {}; lower it.",
        o.min_lr.value_or(0), o.lr.value_or(0));
  check(!o.nesterov || !o.momentum || *o.momentum > 0,
        "train: --nesterov needs momentum: --momentum is 0; raise it or leave --nesterov out.");
  check(!o.amp || !o.precision, "train: --amp and --precision {} are both given; give one.",
        o.precision.value_or(""));
  check(o.amp || !o.amp_dtype, "train: --amp-dtype {} needs --amp; add it or use --precision.",
        o.amp_dtype.value_or(""));
  static const char* known[] = {"fp32", "tf32", "fp16", "bf16"};
  check(!o.precision ||
            std::find(std::begin(known), std::end(known), *o.precision) != std::end(known),
        "train: --precision: '{}' is not known; choose fp32, tf32, fp16 or bf16.",
        o.precision.value_or(""));
}

}  // namespace

bool is_mlp(const std::string& model) {
  return model == "mlp";
}

bool is_resnet(const std::string& model) {
  static const char* names[] = {"resnet",    "resnet18", "resnet34", "resnet50", "resnet101",
                                "resnet152", "resnet20", "resnet32", "resnet44", "resnet56"};
  return std::find(std::begin(names), std::end(names), model) != std::end(names);
}

bool is_gpt(const std::string& model) {
  static const char* names[] = {"gpt",         "gpt-nano",   "gpt-micro", "gpt2",
                                "gpt2-medium", "gpt2-large", "gpt2-xl"};
  return std::find(std::begin(names), std::end(names), model) != std::end(names);
}

Parsed parse_options(const std::vector<std::string>& arguments) {
  Parsed parsed;
  Options& o = parsed.options;
  o.command = "train";
  for (const std::string& argument : arguments) o.command += " " + argument;

  Flags flags("train", "Trains an MLP, a ResNet or a GPT.", examples);
  declare_model(flags, o);
  declare_device(flags, o);
  declare_data(flags, o);
  declare_length(flags, o);
  declare_optimizer(flags, o);
  declare_run(flags, o);
  bool version = false;
  flags.group("Help");
  flags.flag("--version", version, "print the version and leave");
  flags.help_flag();
  if (const auto help = flags.parse(arguments)) {
    parsed.text_to_print = *help;
    return parsed;
  }
  if (version) {
    parsed.text_to_print =
        std::string("crucible ") + build_info::version + " (" + git_revision() + ")\n";
    return parsed;
  }
  check_consistent(o);
  if (o.amp) o.precision = o.amp_dtype.value_or("bf16").front() == 'f' ? "fp16" : "bf16";
  return parsed;
}

}  // namespace crucible::train

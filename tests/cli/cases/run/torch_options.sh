# Options that show in what the real engine computes: rows of eleven small runs on the processor.
roofline list engines --format csv | grep -q '^engines,torch[^,]*,ok,' || { echo "no engine" >&2; exit 77; }

# once NAME MODEL OPTION...
once() {
	name=$1
	model=$2
	shift 2
	roofline run -q --arch "$model" --batch-size 4 --warmup-iters 0 --iters 6 --backend cpu --threads 1 \
		--synthetic --env lab --label "lab_$name" --log-dir L "$@" >out 2>err || cat out err
}

once plain mnist_cnn --deterministic
once again mnist_cnn --deterministic
once nhwc mnist_cnn --channels-last
once bf16 mnist_cnn --precision bf16
once amp mnist_cnn --precision amp
once adam mnist_cnn --optimizer adam
once adamw mnist_cnn --optimizer adamw --optimizer-kernels foreach --weight-decay 0.5
once accum mnist_cnn --grad-accum-steps 3
once fwd mnist_cnn --mode fwd
once lm tiny_lm --context-length 16 --lr 0.1
# one batch three times is that batch: without dropout and batch norm the same losses, but for rounding
once lm_accum tiny_lm --context-length 16 --lr 0.1 --grad-accum-steps 3

awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	{ gsub(/"[^"]*"/, "text")
	  if ($at["label"] == "lab_plain" || $at["label"] == "lab_lm") { hash = $at["loss_hash"]; loss = $at["loss_last"] }
	  same = $at["label"] == "lab_again" ? ($at["loss_hash"] == hash ? ", the same bits" : ", other bits") : ""
	  far = $at["loss_last"] - loss
	  near = far * far < loss * loss * 1e-4 ? "near" : "far"
	  print $at["label"], $at["status"], $at["precision"] ($at["autocast"] ? "/" $at["autocast"] : ""),
		$at["layout"], $at["optimizer"], $at["batch"] "=" $at["micro_batch"] "x" $at["accum"],
		($at["context_length"] ? $at["context_length"] " tokens, " : "") near same }' L/metrics.csv

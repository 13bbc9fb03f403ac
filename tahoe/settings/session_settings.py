"""Session settings of delta-spark (``spark.databricks.delta.…``), each with its state.

Written as ``name`` or ``name=usual``, without the prefix. The usual value matches Tahoe's fixed behavior.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tahoe.settings.setting import Setting, State, check_setting

__all__ = ["SESSION_SETTINGS", "PREFIX", "check_session_settings"]

PREFIX = "spark.databricks.delta."
_KIND = "session setting"
_CHECKED_ELSEWHERE = (
    "spark.databricks.delta.properties.defaults.",
    *(
        f"spark.databricks.delta.streaming.allowSourceColumn{kind}.ckpt_"
        for kind in ("Drop", "Rename", "RenameAndDrop", "TypeChange")
    ),
)
"""Prefixes of settings that are checked where they are used: defaults of table properties are checked as properties, and settings that let
one stream read past schema changes have the stream in their names."""

_OTHER_PREFIXES = (
    *(
        Setting(
            f"spark.databricks.io.skipping.mdc.{name}",
            State.NO_EFFECT,
            "Rows are clustered by the ranks of their values.",
            _KIND,
            (usual,),
        )
        for name, usual in (("addNoise", "true"), ("rangeId.max", "1000"), ("sortWithinFiles", "false"))
    ),
    Setting(
        "spark.databricks.io.skipping.stringPrefixLength",
        State.NO_EFFECT,
        "The table property delta.dataSkippingStringPrefixLength sets the prefix length of text bounds.",
        _KIND,
        ("32",),
    ),
    Setting(
        "spark.delta.logStore.",
        State.NO_EFFECT,
        "Tahoe commits with the put-if-absent of the storage itself. Writers with a lock of their own, such as S3SingleDriverLogStore and "
        "S3DynamoDBLogStore, bypass it: use only one kind of writer for a table.",
        _KIND,
    ),
)
"""Settings of delta-spark with other prefixes. A name that ends with a dot is a prefix."""

_WORKS = """
    columnMapping.allowRemoval resolveMergeUpdateStructsByName.enabled rowTracking.backfill.maxNumFiles
    alterLocation.bypassSchemaCheck autoCompact.earlySkipPartitionTable.enabled autoCompact.enabled
    autoCompact.maxFileSize autoCompact.maxNumModifiedPartitions autoCompact.minFileSize autoCompact.minNumFiles
    autoCompact.modifiedPartitionsOnly.enabled autoCompact.nonBlindAppend.enabled autoCompact.reservePartitions.enabled
    changeDataFeed.timestampOutOfRange.enabled constraints.assumesDropIfExists.enabled
    delete.allowExistsSubquery
    commitInfo.userMetadata convert.metadataCheck.enabled convert.partitionValues.ignoreCastFailure
    convert.useCatalogPartitions convert.useCatalogSchema convert.useMetadataLog
    identityColumn.allowSyncIdentityToLowerHighWaterMark.enabled optimize.batchSize
    optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize optimize.clustering.mergeStrategy.minCubeSize.threshold
    optimize.maxDeletedRowsRatio optimize.maxFileSize optimize.minFileSize optimize.zorder.checkStatsCollection.enabled
    optimizeMetadataQuery.enabled optimizeWrite.binSize optimizeWrite.enabled optimizeWrite.maxShufflePartitions
    dynamicPartitionOverwrite.enabled replaceOn.dataframe.writer.enabled replaceUsing.dataframe.writer.enabled
    replaceWhere.constraintCheck.enabled replaceWhere.dataColumns.enabled
    dml.insert.dfByName.allowImplicitCasts insert.byName.schemaEvolution.enabled
    properties.defaults.minReaderVersion properties.defaults.minWriterVersion retentionDurationCheck.enabled
    schema.autoMerge.enabled vacuum.lite.enabled vacuum.logging.enabled vacuum.retentionWindowIgnore.enabled
    write.txnAppId write.txnVersion typeWidening.allowAutomaticWidening write.txnVersion.autoReset.enabled
    streaming.allowSchemaLocationOutsideCheckpointLocation streaming.allowSourceColumnDrop
    streaming.allowSourceColumnRename streaming.allowSourceColumnRenameAndDrop streaming.allowSourceColumnTypeChange
    streaming.schemaTracking.mergeConsecutiveSchemaChanges.enabled streaming.schemaTracking.metadataPathCheck.enabled
    tableFeatures.fastDropFeature.enabled withEventTimeOrder.enabled
"""

_GROUPS: tuple[tuple[State, str, str], ...] = (
    (
        State.PLANNED,
        "Planned for a later version.",
        """
            optimize.conditionalIncrementMetric.enabled=true
        """,
    ),
    (
        State.NO_EFFECT,
        "A table has at most four clustering columns, and these always keep their statistics.",
        "clusteredTable.numClusteringColumnsLimit=4 liquid.alterColumnAfter.statsSchemaCheck=true",
    ),
    (
        State.NO_EFFECT,
        "Identity columns are always numbered.",
        "identityColumn.enabled=true",
    ),
    (
        State.NO_EFFECT,
        "CONVERT TO DELTA reads the footers of a folder in sequence, a few in parallel, and keeps none in memory.",
        """
            import.batchSize.schemaInference=1000000 import.batchSize.statsCollection=50000
        """,
    ),
    (
        State.NO_EFFECT,
        "Small files are counted in the version of each commit; no statistics are kept between commits.",
        """
            autoCompact.maxTablePartitionStats autoCompact.partitionStatsSize autoCompact.recordPartitionStats.enabled=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Optimized writes use Spark's adaptive rebalancing, which combines small blocks automatically.",
        "optimizeWrite.numShuffleBlocks=50000000",
    ),
    (
        State.NO_EFFECT,
        "OPTIMIZE writes each bin in a Spark task, and clusters with a k-d grid.",
        """
            optimize.maxThreads=15 optimize.repartition.enabled=false optimize.zorder.fastInterleaveBits.enabled=false
        """,
    ),
    (
        State.NO_EFFECT,
        "VACUUM lists and deletes in parallel in the driver, and keeps the deletion vectors of all retained files.",
        """
            tableFeatures.dev.fastDropFeature.DVDiscoveryInVacuum.disabled=false
            vacuum.enforceDeletedFileAndLogRetentionDurationCompatibility=true vacuum.parallelDelete.enabled=true
            vacuum.parallelDelete.parallelism vacuum.relativize.ignoreError=false
        """,
    ),
    (
        State.NO_EFFECT,
        "DROP FEATURE writes tombstones for deletion vector files in one commit; streams check the protocol of each version.",
        """
            tableFeatures.fastDropFeature.alwaysValidateProtocolInStreaming.enabled=true
            tableFeatures.fastDropFeature.dvTombstoneCountThreshold=10000
            tableFeatures.fastDropFeature.generateDVTombstones.enabled=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Old versions can be read as long as their files exist.",
        "vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration=false",
    ),
    (
        State.NO_EFFECT,
        "RESTORE keeps or upgrades the protocol, so that older versions stay readable.",
        "restore.protocolDowngradeAllowed=false",
    ),
    (
        State.PLANNED,
        "Streams have one fixed behavior; use the reader's options.",
        """
            deltaLog.getChangeLogFiles.failOnGapsInTests=true deltaLog.getChangeLogFiles.logGaps=true
            streaming.distributedInitialSnapshot=false streaming.ignoreInternalMetadataForSchemaChange.enabled=true
            streaming.initialSnapshotMaxFiles=100000 streaming.logSizeInMemoryThreshold
            streaming.offsetValidation.enabled=true streaming.schemaTracking.enabled=true
            streaming.schemaValidationOnRestart.enabled=true
            streaming.sink.implicitCastEscapeColumnNames=true streaming.sink.implicitCastForTypeMismatchOnly=true
            streaming.trailingCommitValidation.enabled=true
            streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled=false
            streaming.unsafeReadOnIncompatibleSchemaChangesDuringStreamStart.enabled=false
            streaming.unsafeReadOnNullabilityChange.enabled=false streaming.unsafeReadOnPartitionColumnChanges.enabled=false
            typeWidening.allowTypeChangeStreamingDeltaSource=true typeWidening.bypassStreamingTypeChangeCheck=false
            typeWidening.allowIntegralDecimalCoercion=true typeWidening.enableStreamingSchemaTracking=false
        """,
    ),
    (
        State.NO_EFFECT,
        "The specification defines the allowed type changes, also for Iceberg; columns of a DataFrame contain no type widening metadata.",
        """
            typeWidening.allowUnsupportedIcebergTypeChanges=false typeWidening.bypassUnsupportedTypeChangeCheck=false
            typeWidening.removeSchemaMetadata=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Statistics for files of an Iceberg table come from their footers, for all types; NO STATISTICS omits them.",
        """
            clone.iceberg.allowPartialStats=true collectStats.convertIceberg.date=true
            collectStats.convertIceberg.decimal=true collectStats.convertIceberg.timestamp=true
            collectStats.convertIceberg=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Partition values of an Iceberg table come from its manifests; buckets are not partitions; older partitionings are refused.",
        """
            convert.iceberg.bucketPartition.enabled=true convert.iceberg.enabled=true
            convert.iceberg.partitionEvolution.enabled=false convert.iceberg.useNativePartitionValues=true
        """,
    ),
    (
        State.NO_EFFECT,
        "CLONE replaces a table if the statement says so.",
        """
            clone.replaceEnabled=true
        """,
    ),
    (
        State.PLANNED,
        "The table feature that it configures is not supported for writing by this version (docs/features.md).",
        """
            adaptiveMetadataTree.preview.enabled=true amt.entriesPerLeaf=50000 amt.fullRewriteCheckpointIntervalMultiplier=5
            amt.largeCommitActionsCountThresholdForInlineManifestCommit
            catalog.enableServerSidePlanning=false
            coordinatedCommits.commitCoordinator.dynamodb.awsCredentialsProviderName
            coordinatedCommits.commitCoordinator.dynamodb.readCapacityUnits=5
            coordinatedCommits.commitCoordinator.dynamodb.skipPathCheckEnabled=false
            coordinatedCommits.commitCoordinator.dynamodb.writeCapacityUnits=5
            coordinatedCommits.commitFilesIterator.backfillGapFix.enabled=true
            coordinatedCommits.getCommits.threadPoolSize=5 coordinatedCommits.ignoreMissingCoordinatorImplementation=true
            enableTableRedirectFeature=false skipRedirectFeature=false
        """,
    ),
    (
        State.NO_EFFECT,
        "Geometry and geography need no session setting: a new table with such a column gets the feature, an existing table must enable it "
        "first (docs/design/036-geospatial.md).",
        "geo.preview.enabled",
    ),
    (
        State.NO_EFFECT,
        "Tables get variantType and variantShredding, not their previews; statistics of a variant are a count of NULLs, and bounds of its "
        "paths are neither written nor used.",
        """
            stats.limitPerVariant=0 variant.disableVariantTableFeatureForSpark40=false variant.forceUsePreviewTableFeature=false
            variantShredding.collectVariantDataSkippingStats variantShredding.forceUsePreviewTableFeature=false
            variantShredding.guardVariantInStatsSchema.enabled=true variantShredding.parseFooterForStats=false
        """,
    ),
    (
        State.NO_EFFECT,
        "A CHECK constraint that Tahoe cannot evaluate is refused, and so is NOT NULL inside arrays and maps.",
        "checkConstraints.validation.enabled constraints.allowUnenforcedNotNull.enabled=false",
    ),
    (
        State.NO_EFFECT,
        "Rows get their ids when row tracking is enabled, in batches of rowTracking.backfill.maxNumFiles files.",
        """
            backfill.maxNumFiles backfill.maxNumFilesFactor=3 rowTracking.backfill.enabled=true
            rowTracking.ignoreSuspension=false
        """,
    ),
    (
        State.NO_EFFECT,
        "The specification defines the allowed features of a table, and log cleanup after a dropped one.",
        """
            featureEnablement.conflictResolution.enabled=true
            tableFeatures.allowMetadataCleanupWhenAllProtocolsSupported=true
            tableFeatures.dev.allowMetadataCleanupCheckpointExistenceCheck.disabled=false
            tableFeatures.dev.unsupportedTableFeatures.enabled=false tableFeatures.testFeatures.enabled=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Tahoe always uses the usual value.",
        """
            alterTable.dropColumn.enabled=true changeColumn.renameColumnEscapeName=true
            normalizePartitionValuesOnRead=true
            skipRecordingEmptyCommits=true stalenessLimit=0
            table.parquetV2.timestampOutputType=timestamp_micros testOnly.dataFileNamePrefix testOnly.dvFileNamePrefix
            timeTravel.resolveOnIdentifier.enabled=true write.dataFilesToSubdir=false write.utcTimestampPartitionValues=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Commits do not set it; use the history or Table.version() for the newest version.",
        "lastCommitVersionInSession",
    ),
    (
        State.NO_EFFECT,
        "Delta Sharing is not part of Tahoe.",
        """
            spark.sql.delta.sharing.cdfEnableHistoricalProtocol spark.sql.delta.sharing.cdfStreamingAutoResolveResponseFormat
            spark.sql.delta.sharing.enableAutoResolveForCdf spark.sql.delta.sharing.enableDeltaFormatBatch
            spark.sql.delta.sharing.forceDeltaFormat spark.sql.delta.sharing.streamingAutoResolveResponseFormat
            spark.sql.delta.sharing.streamingConvertStartingTimestampToVersion
            spark.sql.delta.sharing.streamingEnableHistoricalProtocol
        """,
    ),
    (
        State.NO_EFFECT,
        "Tahoe has its own implementation of checkpoints and checksums, which runs after the commit.",
        """
            allFilesInCrc.enabled=true allFilesInCrc.thresholdIndexedCols allFilesInCrc.thresholdNumFiles=50
            allFilesInCrc.verificationMode.enabled=false allFilesInCrc.verificationMode.forceOnNonUTC.enabled=true
            checkpoint.dropBackReference.enabled=true checkpoint.exceptionThrowing.enabled=false checkpoint.partSize
            checkpointSchema.useFromCheckpointMetadata=true checkpointSchema.writeThresholdLength=20000
            checkpointV2.exposeTableFeatureForTesting=false checkpointV2.threadpool.size=32 checkpointV2.topLevelFileFormat
            checksum.mismatch.fatal=true checksumDVMetrics.enabled=true
            checksumDeletedRecordCountsHistogramMetrics.enabled=true domainMetadatasInCrc.maxAllowed=10
            incremental.commit.enabled=true incremental.commit.forceVerifyInTests=true incremental.commit.verify=false
            lastCheckpoint.checksum.enabled=true lastCheckpoint.nonFileActions.threshold=30
            lastCheckpoint.sidecars.threshold=30 lastCheckpoint.suppressOptionalFields=false
            readProtocolAndMetadataFromChecksum.enabled=true setTransactionsInCrc.maxAllowed=100
            setTransactionsInCrc.writeOnCommit=true statsAsStructInCheckpoint.forcedDisabled
            versionChecksum.forcedValidationInterval=forced_checksum_validation_interval_default
            versionChecksum.forcedValidationMinTimeIntevalMinutes writeChecksumFile.enabled=true
            writeChecksumFile.histogramFollowsProtocol=true
        """,
    ),
    (
        State.REFUSED,
        "it changes the rows, columns or properties that are read or written, and only its usual value is supported.",
        """
            changeDataFeed.defaultSchemaModeForColumnMappingTable=endversion convertEmptyToNullForStringPartitionCol=true
            createDataFrame.dropNullColumns=false deltaTableBuilder.forceTablePropertyLowerCase.enabled=false
            insert.preserveNullSourceStructs=true
            merge.preserveNullSourceStructs=true merge.preserveNullSourceStructs.updateStar=true
            streaming.createDataFrame.dropNullColumns=false updateAndMergeCastingFollowsAnsiEnabledFlag=false
        """,
    ),
    (
        State.REFUSED,
        "this version does not support the requested kind of write.",
        """
            replaceWhere.dataColumnsWithCDF.enabled=true
        """,
    ),
    (
        State.NO_EFFECT,
        "The table property delta.enableDeletionVectors decides between deletion vectors and rewritten files.",
        """
            delete.deletionVectors.persistent=true merge.deletionVectors.persistent=true
            update.deletionVectors.persistent=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Statistics are always collected, from the footers of the written files, and always used.",
        """
            alwaysCollectStats.enabled=false collectStats.fallbackToInterpretedProjection=true
            collectStats.numFilesPerPartition=100 collectStats.skipFloatingPointFromFooter=true
            collectStats.useMultiThreadedStatsCollection=true commitStats.force=false
            skipping.enhancedIsNullPushdownExprs.enabled=true skipping.enhancedIsNullPushdownExprs.maxDepth=8
            skipping.partitionLikeDataSkipping.additionalSupportedExpressions
            skipping.partitionLikeDataSkipping.limitToClusteringColumns=true
            skipping.partitionLikeDataSkippingFilesThreshold=100 skipping.partitionLikeFilters.enabled=false
            stats.collect.using.tableSchema=true stats.collect=true stats.limitPushdown.enabled=true
            stats.limitPushdown.skipNonDeterministicFilters.enabled=true stats.skipping=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Every commit contains its operation and metrics in commitInfo; conflict checks use them.",
        """
            commitInfo.enabled=true dmlMetricsFromMetadata.enabled=true history.metricsEnabled=true
            insertOverwrite.removeMetrics.enabled=true metrics.alwaysReportSomeZeroMetrics=true
            replaceWhere.dataColumns.metrics.enabled=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Tahoe always uses the safe behavior.",
        """
            allowArbitraryProperties.enabled=false alter.replaceColumns.safe.enabled=true
            alterTable.bypassCharVarcharToStringFix=false
            alterTable.changeColumn.checkExpressions=true changeColumn.checkDependentExpressionsUseV2=true
            changeDataFeed.allowTimeTravelOptionsForSchema=false
            changeDataFeed.unsafeBatchReadOnIncompatibleSchemaChanges.enabled=false checkLatestSchemaOnRead=true
            columnMapping.checkMaxColumnId=true commandInvariantChecksThrow=false commandInvariantChecksUseUnreliable=true
            commit.idempotencyCheck.enabled=false commitValidation.consistentDataChange.mode commitValidation.enabled=true
            conflictChecker.enforceConcurrentFeatureEnablement.enabled=false
            conflictDetection.allowReplaceTableToRemoveNewDomainMetadata=true
            conflictDetection.partitionLevelConcurrency.widenNonDeterministicPredicates createEmptySchemaTable.enabled=true
            deletionVectors.skipCommitCheck=true
            duplicateActionCheck.enabled=true emptyFileCheck.throwEnabled=false
            failOnPartitionValueParsingError isDeltaTable.strictCheck=true isDeltaTable.throwOnError=true
            legacy.allowAmbiguousPathsInCreateTable=false legacy.storeOptionsAsProperties=false
            merge.emptySchemaTargetCheck.enabled=true merge.failIfSourceChanged=false nullPartitionCheck.throwEnabled=false
            numRecordsValidation.enabled=true partitionColumnChangeCheck postCommitHook.throwOnError
            replace.protocolDowngradeAllowed=false requiredSparkConfsCheck.enabled=true schema.typeCheck.enabled=true
            tablePropertyConstraintsCheck.enabled=true timeTravel.parsing.strict=true
        """,
    ),
    (
        State.NO_EFFECT,
        "Tahoe has its own Iceberg conversion (docs/design/004-uniform.md) with its own settings.",
        """
            hudi.maxPendingCommits=100 iceberg.maxPendingActions iceberg.maxPendingCommits=100
            uniform.hudi.sync.convert.enabled=false uniform.iceberg.geospatial.enabled=false
            uniform.iceberg.include.base.converted.version=true uniform.iceberg.maxActionsToConvertForCommitLarge=1000000
            uniform.iceberg.retry.times=3 uniform.iceberg.sync.convert.enabled=false uniform.iceberg.v3.enabled=true
        """,
    ),
    (
        State.NO_EFFECT,
        "It tunes the internals of the JVM implementation, which Tahoe does not share.",
        """
            catalog.update.enabled=false catalog.update.longFieldTruncationThreshold=4000 catalog.update.threadPoolSize=20
            changelogV2.enabled=false columnMapping.disallowEnablingWhenColumnMappingMetadataAlreadyExists=true
            columnMapping.reuseColumnMetadataDuringOverwrite=true columnMapping.reuseColumnMetadataDuringReplace=true
            columnMapping.stripMetadata=true command.fileMaterializationLimit.enabled=true
            command.fileMaterializationLimit.softMax=10000000 commit.inconsistentList.maxRetries=3 commitLock.enabled
            commitMetrics.enabled=true commitMetrics.threadPoolSize=20
            deletionVectors.disableTightBoundOnFileCreationForDevOnly=false deletionVectors.packing.targetSize
            deletionVectors.propagateCloseFailure=true deletionVectors.useMetadataRowIndex=true
            deletionVectors.useObjectIdentityForNonAMTTables=false delta.log.cacheRetentionMinutes=60 delta.log.cacheSize=10000
            deltaLog.minorCompaction.useForReads=true dummyFileManager.numOfFiles=3 dummyFileManager.prefix
            dynamicPartitionOverwrite.parsePartitionValues=true fileSizeHistogramMetrics.enabled=true
            generatedColumn.allowNullableIngest.enabled=true generatedColumn.partitionFilterOptimization.enabled=true
            generatedColumn.validateOnWrite.enabled history.maxKeysPerList=1000 history.threadPoolSize=10
            hms.schema.forceAlterTableDataSchema=false inCommitTimestamp.retainEnablementInfoFix.enabled=true
            includeTableIdInFileIndexComparison=true
            insertReplaceOnOrUsing.materializeSource internalUdfOptimization.enabled=true
            loadFileSystemConfigsFromDataFrameOptions=true maxCommitAttempts=10000000 maxNonConflictCommitAttempts=10
            maxSnapshotLineageLength=50 merge.analysis.batchActionResolution.enabled=true
            merge.failSourceCachedAfterMaterialization=true merge.forceSourceMaterializationWithUnreadableFilesConfig=true
            merge.insert.fixCaseSensitiveDuplicateColumns=true merge.materializeCachedSource=true merge.materializeSource
            merge.materializeSource.maxAttempts=4 merge.materializeSource.rddStorageLevel=disk_only
            merge.materializeSource.rddStorageLevelFirstRetry merge.materializeSource.rddStorageLevelRetry
            merge.optimizeInsertOnlyMerge.enabled=true merge.optimizeMatchedOnlyMerge.enabled=true
            merge.repartitionBeforeWrite.enabled=true merge.skipOssResolutionWithStar=true partitionColumnValidity.enabled=true
            schema.removeExistsDefault=true schema.removeSparkInternalMetadata=true schemaEvolution.merge.fixNestedStructAlignment=true
            snapshot.logging.maxFilesThreshold snapshotCache.storageLevel=memory_and_disk_ser snapshotLoading.maxRetries=2
            snapshotPartitions v2.enableMode=auto workAroundColonsInHadoopPaths.enabled=true
        """,
    ),
)
"""State, reason, and the settings with this state and reason."""


def _session_settings() -> list[Setting]:
    settings = [Setting(PREFIX + name, State.WORKS, kind=_KIND) for name in _WORKS.split()]
    for state, why, names in _GROUPS:
        for name, _, usual in (entry.partition("=") for entry in names.split()):
            settings.append(Setting(PREFIX + name, state, why, _KIND, (usual,) if usual else ()))
    return [*settings, *_OTHER_PREFIXES]


SESSION_SETTINGS: tuple[Setting, ...] = tuple(_session_settings())
"""All session settings, the working ones first."""

_LOG_STORES = "spark.delta.logStore."
_PREFIXES = (PREFIX, "spark.databricks.io.skipping.", _LOG_STORES)
_BY_NAME = {setting.name: setting for setting in SESSION_SETTINGS}


def check_session_settings(settings: Mapping[str, str]) -> None:
    """Check the settings of a session that reads or writes a Delta table: warn once about each without effect, raise for refused ones.

    A name with delta-spark's prefix that delta-spark does not have causes a warning too, since it may be misspelled.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``).
    """
    for name, value in settings.items():
        if not name.startswith(_PREFIXES) or name.startswith(_CHECKED_ELSEWHERE):
            continue
        setting = _BY_NAME.get(name)
        if setting is None and name.startswith(_LOG_STORES):
            setting = replace(_BY_NAME[_LOG_STORES], name=name)
        check_setting(setting or Setting(name, State.NO_EFFECT, "delta-spark has no setting of this name.", _KIND), str(value))
